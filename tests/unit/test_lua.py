"""How the scripts are written: short lines, arguments with names, keys from one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scaletest.broker.scripts import CONSTANTS, script

FOLDER = Path(__file__).parents[2] / "scaletest" / "broker" / "lua"
SOURCES = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.lua")}
INCLUDED = set(re.findall(r"^--@include (\w+)", "\n".join(SOURCES.values()), re.MULTILINE))
ARGUMENT = r"(?:tonumber\()?(?:KEYS|ARGV)\[\d+\]\)?(?: == '1')?"
NAMING = re.compile(rf"^local [\w, ]+ = {ARGUMENT}(?:,\s+{ARGUMENT})*\n", re.MULTILINE)
LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'")


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - INCLUDED))
def test_a_script_names_its_keys_and_arguments_at_its_head(name: str) -> None:
    code = re.sub(r"--.*", "", SOURCES[name])
    assert not re.findall(r"(?:KEYS|ARGV)\[\d.*", NAMING.sub("", code))


@pytest.mark.parametrize("name", sorted(INCLUDED))
def test_what_is_included_knows_no_arguments(name: str) -> None:
    assert not re.search(r"\b(?:KEYS|ARGV)\b", re.sub(r"--.*", "", SOURCES[name]))


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_what_a_key_begins_with_is_no_literal(name: str) -> None:
    literals = LITERAL.findall(re.sub(r"--.*", "", SOURCES[name]))
    parts = "|".join(sorted(set(re.findall("[a-z]+", " ".join(map(str, CONSTANTS.values()))))))
    assert not [literal for literal in literals if re.match(rf"'(?:{parts}):", literal)]


@pytest.mark.parametrize("constant", sorted(CONSTANTS))
def test_every_constant_is_used_and_scripts_get_those_they_use(constant: str) -> None:
    uses = re.compile(rf"\b{constant}\b")
    users = [name for name in SOURCES.keys() - INCLUDED if uses.search(script(name).text)]
    assert users
    for name in users:
        assert f"local {constant} = " in script(name).text.split("local clock")[0]
