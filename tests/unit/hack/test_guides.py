"""README, tutorial and guides: every command there is one that the program takes, and is run by
some test, or says why not; complete files are those of the example package, which the tests run.
"""

import re
import tomllib
from pathlib import Path

import pytest

from hack import newcomer
from hack.guides import BLOCK, PAGES, ROOT, TIERS, Block, command_lines, read_blocks, shell_blocks
from tests.unit.cli.test_options import accept

LANGUAGES = {"sh", "sql", "text", "yaml", "toml", "dockerfile", "python", "json", "html"}
ALL_PAGES = sorted({*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")})
PROGRAMS = r"(?:\./)?(?:scaletest|hack/\w+|helm|kubectl|docker|podman|pip|curl|kind|rq)"


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_block_has_a_language_and_every_shell_block_is_run_or_says_why_not(
    page: Path,
) -> None:
    for block in read_blocks(page):
        assert block.language in LANGUAGES, f"{block.place} has no language, or an unknown one"
        assert block.language == "sh" or not (block.reason or block.until), block.place
        assert block.reason or block.tier in TIERS, block.place


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_no_command_hides_outside_a_shell_block(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    assert "```" not in text, f"{page.name} has a block that is not seen"
    assert not re.search(rf"^ {{4,}}\$? ?{PROGRAMS} ", text, re.M), "use a block of language sh"
    for block in read_blocks(page):
        if block.language == "text":
            assert not re.search(rf"^\$ {PROGRAMS} ", block.text, re.M), (
                f"{block.place} types a command: put it into a block of language sh"
            )


def test_command_lines_are_found_behind_pipes_and_before_comments(tmp_path: Path) -> None:
    text = "x | scaletest a - && scaletest b 'c | d' &\nscaletest e \\\n  f  # g\nscaletest h > i"
    block = Block(tmp_path, 1, "sh", text)
    assert list(command_lines(block, "scaletest")) == [
        ["a", "-"],
        ["b", "c | d"],
        ["e", "f"],
        ["h"],
    ]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_commands_of_scaletest_are_accepted(page: Path) -> None:
    for block in shell_blocks(page):
        for arguments in command_lines(block, "scaletest"):
            accept(block.place, arguments)


def anchors(page: Path) -> set[str]:
    """Where links into a page may point, as GitHub and others name its headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL_PAGES, ids=names)
def test_links_to_a_heading_find_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            linked = (page.parent / target).resolve() if target else page
            assert linked.suffix != ".md" or anchor in anchors(linked), f"{target}#{anchor}"


def test_every_guide_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    indirect = {"cluster-for-tests", "release"}
    for page in (ROOT / "docs" / "how-to").glob("*.md"):
        assert f"(docs/how-to/{page.name})" in readme or page.stem in indirect, page.name


def test_a_newcomer_types_what_the_readme_or_the_program_told() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    # what the answer to the mistake is, the walk itself sees
    own = [step for step in newcomer.STEPS if step.title != "type what the answer says"]
    assert not [line for step in own for line in newcomer.untold_lines(step, readme)]
    # and nothing in the README that is for newcomers is left out
    typed = {line for step in newcomer.STEPS for line in step.text.splitlines()}
    for block in shell_blocks(ROOT / "README.md"):
        if block.tier == "newcomer":
            assert set(block.text.splitlines()) <= typed, block.place


@pytest.mark.parametrize(
    ("tool", "module", "name"),
    [
        ("kubernetes", "k8s.io/kubernetes", ""),
        ("kwok", "sigs.k8s.io/kwok", "kwok "),
        ("helm4", "helm.sh/helm/v4", "Helm "),
        ("helm3", "helm.sh/helm/v3", " and "),
        ("keda", "github.com/kedacore/keda/v2", "KEDA "),
        ("prometheus-adapter", "sigs.k8s.io/prometheus-adapter", "prometheus-adapter "),
    ],
)
def test_the_readme_names_the_versions_that_tests_use(tool: str, module: str, name: str) -> None:
    built = (ROOT / "hack" / "tools" / tool / "go.mod").read_text("utf-8")
    version = re.search(rf"\b{re.escape(module)} v(\d+\.\d+)\.", built)
    assert version
    tried = (ROOT / "README.md").read_text("utf-8").partition("## Tried on")[2]
    assert f"{name}{version[1]}" in tried


def test_the_guide_from_intels_tester_names_its_options_and_exit_codes() -> None:
    guide = (ROOT / "docs" / "how-to" / "from-the-original.md").read_text("utf-8")
    options = "-caddr -waddr -maddr -qmax -interval -faddr -once -dir -glob -ignore -null-in"
    for name in (*options.split(), "-backoff-max", "-limit", "-req-now", "-req-max"):
        assert re.search(rf"^\|[^|]*`[^|]*{name}\b", guide, re.M), name
    ends = guide.partition("end of `validate-scaling.sh`")[2].partition("\n## ")[0]
    assert {"0", "2", "3", "4", "6", "7"} <= set(re.findall(r"\b\d\b", ends))


EXAMPLES = ROOT / "docs" / "examples"


def code_of(guide: str, language: str) -> list[str]:
    """The blocks of code in that language."""
    text = (ROOT / "docs" / "how-to" / guide).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("guide", "file"),
    [("write-a-workload.md", "checksums.py"), ("add-a-benchmark-kind.md", "compression.py")],
)
def test_the_complete_file_of_a_guide_is_the_example(guide: str, file: str) -> None:
    title, _, code = code_of(guide, "python")[0].partition("\n")
    assert title.endswith(file)
    assert code == (EXAMPLES / "scaletest_example" / file).read_text("utf-8")


@pytest.mark.parametrize("guide", ["write-a-workload.md", "add-a-benchmark-kind.md"])
def test_the_entry_points_of_a_guide_are_those_of_the_example(guide: str) -> None:
    project = tomllib.loads((EXAMPLES / "pyproject.toml").read_text("utf-8"))["project"]
    shown = tomllib.loads(code_of(guide, "toml")[0])["project"]["entry-points"]
    assert shown.items() <= project["entry-points"].items()
