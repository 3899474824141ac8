"""The scripts of hack/: what they do where nothing is installed yet, and when what they run ends
badly.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Says what it was asked for, and ends as the file beside it says, line by line.
STUB = """#!/bin/sh
echo "$@" >>"$0.asked"
code=$(head -n 1 "$0.codes"); sed -i 1d "$0.codes"
exit "${code:-0}"
"""


Play = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Call hack/test with a pytest that ends with these codes: its own code, and how it called
    pytest.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "ruff", "mypy", "lint-imports", "nproc"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
        (programs / f"{name}.codes").write_text("")
    made_of = f"{ROOT} ".encode() + (ROOT / "pyproject.toml").read_bytes()
    (tmp_path / ".scaletest-stamp").write_text(f"{hashlib.sha256(made_of).hexdigest()}\n")

    def played(
        *arguments: str, codes: Sequence[int] = (), types: int = 0, processors: int = 2
    ) -> tuple[int, list[str]]:
        (programs / "python.codes").write_text("".join(f"{code}\n" for code in codes))
        (programs / "mypy.codes").write_text(f"{types}\n")
        (programs / "nproc").write_text(f"#!/bin/sh\necho {processors}\n")
        own = {
            "SCALETEST_VENV": str(tmp_path),
            "SCALETEST_TEST_KUBECONFIG": "",
            "SCALETEST_IMAGES": str(tmp_path),
        }
        environment = {**os.environ, **own, "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            [ROOT / "hack/test", *arguments], env=environment, capture_output=True, check=False
        )
        return done.returncode, (programs / "python.asked").read_text().splitlines()

    return played


@pytest.mark.parametrize(
    ("codes", "expected", "runs"),
    [
        ([0, 0], 0, 2),
        ([1, 0], 1, 2),
        ([0, 1], 1, 2),
        # all that is selected lies in one of the two
        ([5, 0], 0, 2),
        ([0, 5], 0, 2),
        ([5, 1], 1, 2),
        # nothing is selected at all: a name that was not spelt right
        ([5, 5], 5, 2),
        # Ctrl-C, or options that pytest does not know
        ([2], 2, 1),
        ([4], 4, 1),
        ([1, 2], 2, 2),
    ],
)
def test_the_exit_code_covers_both_runs_of_all_tests(
    codes: list[int], expected: int, runs: int, play: Play
) -> None:
    code, asked = play("--all", "tests/unit/model/test_model.py", "-k", "a b", codes=codes)
    # expect both, unless the first was ended, and what was asked for in each
    assert (code, len(asked)) == (expected, runs)
    assert all(line.endswith("tests/unit/model/test_model.py -k a b") for line in asked)
    assert ["-m not cluster" in line for line in asked] == [True, False][:runs]


@pytest.mark.parametrize(("codes", "expected"), [([0], 1), ([1], 1), ([5], 1), ([2], 2)])
def test_wrong_types_fail_where_tests_pass(codes: list[int], expected: int, play: Play) -> None:
    assert play("--fast", codes=codes, types=1)[0] == expected


def test_missing_tools_of_a_bare_machine_are_listed() -> None:
    # given a Python without any package
    line = [sys.executable, "-S", "-m", "hack.kubernetes", "missing"]
    done = subprocess.run(
        line,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# In place of Python: it makes an environment with a scaletest that says what it was asked for.
PYTHON = f"""#!/bin/sh
[ "$2" = venv ] || exec {sys.executable} "$@"
mkdir -p "$3/bin"
ln -sf /bin/true "$3/bin/pip"
cat >"$3/bin/scaletest" <<'END'
#!/bin/sh
for word; do printf '%s|' "$word"; done >>"$RUNNER_TEMP/asked"
echo >>"$RUNNER_TEMP/asked"
[ "$1" = validate ] || echo '{{"verdict": {{"reason": "100% of two"}}}}' >"$4"
[ "$1" != validate ] || exit 3
END
chmod +x "$3/bin/scaletest"
"""


def play_action(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the body of action.yml as a pipeline does, with a scaletest that ends with FAIL."""
    python = folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    own = {"ARGUMENTS": arguments, "RUNNER_TEMP": str(folder)}
    own |= {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = {**os.environ, **own, "PATH": f"{python.parent}:/usr/bin:/bin"}
    return subprocess.run(
        [ROOT / "hack/action"], env=environment, capture_output=True, text=True, check=False
    )


def test_the_action_reports_the_run_that_it_made(tmp_path: Path) -> None:
    # given a program with an option like ours
    done = play_action(tmp_path, "--limit 4 -- tool 'a b' --run-dir x")
    assert done.returncode == 3 and "::error title=scaletest FAIL::100%25 of two" in done.stdout
    validate, *reports = (tmp_path / "asked").read_text().splitlines()
    (run,) = tmp_path.glob("scaletest-run-*")
    assert validate == f"validate|--run-dir|{run}|--limit|4|--|tool|a b|--run-dir|x|"
    assert len(reports) == 4 and all(line.startswith(f"report|{run}|-o|") for line in reports)
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "verdict=FAIL\n"


@pytest.mark.parametrize("option", ["--run-dir runs/one", "--run-dir=runs/one"])
def test_the_action_refuses_a_folder_of_the_run(option: str, tmp_path: Path) -> None:
    done = play_action(tmp_path, f"--limit 4 {option} -- tool")
    assert done.returncode == 2 and "leave out --run-dir" in done.stdout
    assert not (tmp_path / "asked").exists()
