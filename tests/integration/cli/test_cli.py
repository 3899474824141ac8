"""The program as a user runs it: processes, exit codes, what stands on which stream."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import EmbeddedServer, Queues
from scaletest.model import Record
from tests.conftest import call, call_here, children_of, eventually, program
from tests.integration.services import all_judged, check_verdict
from tests.unit.valid import checked


def validate(tmp_path: Path, *arguments: str, **options: Any) -> tuple[int, dict[str, Any]]:
    result = call(
        "validate",
        "--local",
        "--run-dir",
        str(tmp_path / "run"),
        "--format",
        "json",
        *arguments,
        **options,
    )
    assert result.stdout, result.stderr
    return result.returncode, checked(json.loads(result.stdout))


def test_a_run_measures_each_step_and_keeps_every_record(tmp_path: Path) -> None:
    # two sleepers do at least what one does; how much more they do depends on the machine
    options = (
        "--limit",
        "2",
        "--seconds",
        "0.1",
        "--scale",
        "1",
        "--step-time",
        "2",
        "--warmup",
        "0.5",
    )
    code, result = validate(tmp_path, *options)
    check_verdict(code, result)
    assert [step["workers"] for step in result["steps"]] == [1, 2]
    alone, together = (float(step["throughput_per_s"]) for step in result["steps"])
    ratio = result["steps"][1]["ratio"]
    run = tmp_path / "run"
    if ratio is None:  # a busy machine left no sound pair of steps
        assert code == 4
    else:
        assert ratio["low"] <= ratio["value"] <= ratio["high"]
        if all_judged(run):  # else the ratio leaves out what the throughputs have
            assert ratio["value"] == pytest.approx(together / alone)
    # and the run is on disk, every record readable
    assert json.loads((run / "result.json").read_text())["verdict"] == result["verdict"]
    assert json.loads((run / "plan.json").read_text())["limit"] == 2
    records = [Record.from_json(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert {record.step for record in records} == {1, 2}
    assert all(record.reply.run_s >= 0.1 for record in records)
    assert len(records) >= sum(step["completions"] for step in result["steps"])


def test_a_shared_lock_does_not_scale(tmp_path: Path) -> None:
    # given a command that only one worker at a time can run
    lock = tmp_path / "lock"
    code, result = validate(
        *(
            tmp_path,
            "--limit",
            "2",
            "--seconds",
            "0.2",
            "--scale",
            "1.9",
            "--step-time",
            "4",
            "--warmup",
            "0.5",
        ),
        *("--", "flock", str(lock), "sleep", "0.2"),
    )
    # expect it refused, unless the machine was too busy to say so
    assert (code, result["verdict"]["kind"]) in ((3, "FAIL"), (4, "INVALID"))
    if code == 3:
        assert "1 -> 2 workers: ratio" in result["verdict"]["reason"]


def test_failing_requests_fail_the_run_and_show_the_error(tmp_path: Path) -> None:
    code, result = validate(
        tmp_path, "--limit", "4", "--seconds", "0.1", "--step-time", "1", "--", "false"
    )
    assert (code, result["verdict"]["kind"]) == (3, "FAIL")
    assert [step["workers"] for step in result["steps"]] == [1]
    assert "returned error code 1" in result["failures"][0]["error"]
    assert result["failures"][0]["count"] >= 1


def test_an_own_redis_is_used_and_left_clean(tmp_path: Path, url: str, redis: Any) -> None:
    options = (
        "--limit",
        "1",
        "--seconds",
        "0.1",
        "--step-time",
        "1",
        "--run-dir",
        str(tmp_path / "run"),
    )
    # on a busy machine it may have measured too little
    assert call("validate", "--redis-url", url, *options).returncode in (0, 4)
    left = {key.decode() for key in redis.keys("*")} - {
        "scaletest:pulse",
        "scaletest:standstill",
        "scaletest:intervals",
        "rq:clean_groups",  # RQ's lock of its maintenance, which expires
    }
    assert not {key for key in left if not key.startswith("rq:worker:")}
    assert Queues(redis).names() == []


@pytest.mark.parametrize("command", [("worker",), ("validate",)])
def test_a_missing_redis_is_exit_7_and_no_traceback(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    extra = ("--run-dir", str(tmp_path / "run")) if command == ("validate",) else ()
    result = call(*command, "--redis-url", "redis://:hidden@127.0.0.1:1", *extra)
    assert result.returncode == 7
    # what a run shows of its progress comes first
    assert "error: Redis at redis://:***@127.0.0.1:1 cannot be reached" in result.stderr
    assert "Traceback" not in result.stderr
    assert "hidden" not in result.stderr
    assert result.stdout == ""


def test_queue_commands_declare_change_list_and_fill_queues(
    url: str, redis: Any, start: Any
) -> None:
    def queue(*arguments: str) -> subprocess.CompletedProcess[str]:
        return call_here("queue", *arguments, env={"SCALETEST_REDIS_URL": url})

    assert (
        queue("add", "a", "b", "--maximum", "2", "--note", "for tests").stdout
        == "a: declared\nb: declared\n"
    )
    assert queue("add", "a").stdout == "a: changed\n"
    listed = json.loads(queue("list", "--format", "json").stdout)
    assert [(row["name"], row["maximum"]) for row in listed] == [("a", 0), ("b", 2), ("q", 0)]
    assert "for tests" in queue("list").stdout
    # nobody serves b: submit times out and takes its request back
    late = queue("submit", "b", "--timeout", "0.1", "--", "0")
    assert (late.returncode, "was dropped" in late.stderr) == (6, True)
    assert late.stderr.startswith("warning: no worker serves queue b now")
    assert queue("submit", "b", "--no-wait", "--", "0").returncode == 0
    assert queue("submit", "b", "--no-wait", "--", "0").returncode == 0
    full = queue("submit", "b", "--no-wait", "--", "0")
    assert (full.returncode, "full" in full.stderr) == (5, True)
    assert queue("purge", "b", "--yes").stdout == "b: 2 requests dropped\n"
    shown = queue("show", "b").stdout
    assert "purged 2" in shown
    assert "client_gone 1" in shown
    assert queue("remove", "b", "--yes").returncode == 0
    assert queue("show", "b").returncode == 2
    # q is served
    start()
    done = queue("submit", "q", "--", "0")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "succeeded")
    failed = queue("submit", "q", "--time-limit", "0.05", "--", "9")
    assert (failed.returncode, json.loads(failed.stdout)["outcome"]) == (5, "timed_out")
    name = queue("submit", "q", "--no-wait", "--", "0").stdout.strip()
    assert json.loads(eventually(lambda: queue("result", name).stdout))["id"] == name
    assert queue("result", "unknown").returncode == 2
    assert queue("show", "typo").returncode == 2


@pytest.mark.parametrize("verb", ["purge", "remove"])
def test_a_question_that_nobody_answers_changes_nothing(
    verb: str, url: str, queues: Queues
) -> None:
    for typed in ("", "y\n"):
        answer = call_here("queue", "--redis-url", url, verb, "q", input=typed)
        assert (answer.returncode, answer.stdout) == (2, "")
        question, remedy = answer.stderr.splitlines()[-2:]
        assert question.startswith("error: cannot ask without a terminal: ")
        assert remedy == "  add --yes"
    assert queues.names() == ["q"]


def test_a_question_without_a_standard_input_gets_no_answer(url: str, queues: Queues) -> None:
    line = program("queue", "--redis-url", url, "purge", "q")
    # sh closes it
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *line]
    answer = subprocess.run(closed, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 2, answer.stderr
    assert answer.stderr.splitlines()[-1] == "  add --yes"


def test_a_queue_whose_name_has_a_slash_is_served(url: str, redis: Any, tmp_path: Path) -> None:
    def queue(*arguments: str) -> subprocess.CompletedProcess[str]:
        return call_here("queue", *arguments, env={"SCALETEST_REDIS_URL": url})

    assert queue("add", "team/media").returncode == 0
    name = queue("submit", "team/media", "--no-wait", "--", "0").stdout.strip()
    assert call("worker", "--queue", "team/media", "--burst", "--redis-url", url).returncode == 0
    assert json.loads(queue("result", name).stdout)["outcome"] == "succeeded"
    assert queue("check").stdout == "team/media: the books balance\n"
    assert queue("remove", "team/media", "--yes").returncode == 0
    assert not [
        key for key in redis.keys("*") if b"team/media" in key and not key.startswith(b"rq:worker:")
    ]


def test_a_restart_of_redis_in_the_middle_of_a_run(tmp_path: Path) -> None:
    with EmbeddedServer(append_only=True, tcp=True) as server:
        url = server.url.replace("redis://", "redis://default:@")
        line = program(
            "validate", "--limit", "2", "--seconds", "0.2", "--step-time", "2", "--redis-url", url
        )
        line += ["--run-dir", str(tmp_path / "run"), "--format", "json"]
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        # no URL, which may hold a password, on any worker's command line
        workers = eventually(
            lambda: [line for line in children_of(process.pid).values() if " worker " in line]
        )
        assert not any("redis://" in line for line in workers)
        eventually(lambda: (tmp_path / "run" / "result.json").exists())
        server.process.kill()
        server.process.wait()
        server.start()
        out, err = process.communicate(timeout=280)
    assert b"Traceback" not in err, err
    result = json.loads(out)
    assert process.returncode in (0, 3, 4), err
    assert [step["failures"] for step in result["steps"]] == [0, 0]


def test_check_says_what_is_wrong_and_repairs_nothing(url: str, redis: Any, queues: Queues) -> None:
    redis.hincrby("scaletest:queue:q:counters", "submitted", 2)
    for _ in range(2):
        wrong = call_here("queue", "--redis-url", url, "check", "q")
        assert wrong.returncode == 3
        assert "submitted 2 is not waiting 0 + running 0 + ended 0" in wrong.stdout
