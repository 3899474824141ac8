"""Probes of the UI, and what its pages say where there is no archive."""

import os
from pathlib import Path

import pytest

from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources


def test_pages_without_redis_are_ready(tmp_path: Path) -> None:
    client = make_app(Sources(tmp_path)).test_client()
    for path in ("/healthz", "/readyz"):
        response = client.get(path)
        assert (response.status_code, response.json) == (200, {"status": "ok"})
        assert response.headers["Cache-Control"] == "no-store"


def test_pages_are_alive_and_not_ready_while_redis_is_away(tmp_path: Path) -> None:
    url = f"unix://user:secret@{tmp_path}/nobody.sock"
    client = make_app(Sources(tmp_path, url)).test_client()
    assert client.get("/healthz").status_code == 200
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "cannot be reached" in response.json["reason"]
    assert "secret" not in response.text


def test_probes_are_answered_below_a_prefix_too(tmp_path: Path) -> None:
    client = make_app(Sources(tmp_path), prefix="/pages").test_client()
    for path in ("/readyz", "/pages/readyz"):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("page", ["/runs", "/compare"])
def test_a_missing_archive_is_told_with_what_helps_there(tmp_path: Path, page: str) -> None:
    text = make_app(Sources(tmp_path / "none")).test_client().get(page).text
    assert f"{tmp_path}/none cannot be read" in text
    assert "--archive" in text and "ui.archive" in text


def test_an_archive_of_another_user_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There is no run" in Sources(tmp_path).why_no_runs
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as root nothing is refused
    assert "cannot be read" in Sources(tmp_path).why_no_runs
