"""Rules of the project itself: generated pages, versions, what must not be in the tree."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import grimp
import pytest
import yaml

import scaletest

ROOT = Path(__file__).parents[3]


def test_the_reference_is_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hack.reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_changelog_knows_the_version() -> None:
    assert f"## {scaletest.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_chart_images_and_package_have_one_version() -> None:
    # a release in which they differ installs the image of the one before
    chart, redis = (
        yaml.safe_load((ROOT / "charts/scaletest" / folder / "Chart.yaml").read_text("utf-8"))
        for folder in (".", "charts/redis")
    )
    assert chart["appVersion"] == scaletest.__version__
    assert chart["version"] == redis["version"] == chart["dependencies"][0]["version"]
    pages = [ROOT / "dockerfiles/Dockerfile", *(ROOT / "docs").rglob("*.md")]
    images = r"\b(?:scaletest(?:-\w+)*:|image\.tag=)(\d+\.\d+\.\d+)"
    tags = {tag for page in pages for tag in re.findall(images, page.read_text("utf-8"))}
    assert tags == {scaletest.__version__}


@pytest.mark.parametrize("words", [["--help"], ["bench", "--help"], ["lifecycle", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        f"import sys; from scaletest.cli.main import run; run({words});"
        " print(sorted(sys.modules), file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stderr
    for name in (
        "aiohttp",
        "redis",
        "rq",
        "rich",
        "yaml",
        "flask",
        "prometheus_client",
        "kubernetes",
        "scaletest.broker",
        "scaletest.benchmarks.measure.launch",
        "scaletest_workers",
    ):
        assert f"'{name}'" not in loaded


def declared(*extras: str) -> set[str]:
    """Names of the distributions that these extras bring, and of the core's where none is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    rows = (
        [project["optional-dependencies"][extra] for extra in extras]
        if extras
        else [project["dependencies"]]
    )
    return {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for row in rows for line in row}


EXTRAS = ("plot", "torch", "nvidia", "operator")
# Where a distribution's module has another name than the distribution.
MODULES = {"PyYAML": "yaml", "PyNaCl": "nacl", "nvidia-ml-py": "pynvml", "pytest-xdist": "xdist"}
# What is used without being imported: the file that uses it, and by which words.
USED_BY = {
    # redis-py parses with it where it is installed
    "hiredis": ("scaletest/runs/environment.py", '"hiredis"'),
    "import-linter": ("hack/test", "/lint-imports"),
    "mypy": ("hack/test", "/mypy"),
    "psutil": ("hack/rq_compat/__main__.py", "psutil"),
    "pytest-timeout": ("pyproject.toml", "\ntimeout = "),
    "ruff": ("hack/test", "/ruff"),
    # mypy reads it where somebody imports yaml
    "types-PyYAML": ("pyproject.toml", "[tool.mypy]\nstrict = true"),
}
IMPORT = re.compile(r"^\s*(?:from\s+(\w+)[\w.]*\s+import\b|import\s+(\w+))", re.MULTILINE)
NAMED = re.compile(r"\b(?:import_module|find_spec|oracle)\(\"(\w+)")


@cache
def imported(folder: str) -> set[str]:
    """Modules that the files of a folder import, also those that they look for or import by
    name.
    """
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py"))
    return {first or second for first, second in IMPORT.findall(text)} | set(NAMED.findall(text))


def test_the_extras_are_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["optional-dependencies"]) == {*EXTRAS, "dev"}
    assert MODULES.keys() | USED_BY.keys() <= declared() | declared(*EXTRAS, "dev")


@pytest.mark.parametrize("name", sorted(declared() | declared(*EXTRAS, "dev")))
def test_every_dependency_is_used(name: str) -> None:
    if name in USED_BY:
        path, usage = USED_BY[name]
        assert usage in (ROOT / path).read_text("utf-8")
        return
    # what users install is used by the product, not only by its tests
    folders = ["scaletest", "workers"]
    if name not in declared() | declared(*EXTRAS):
        folders += ["hack", "tests"]
    assert MODULES.get(name, name.lower().replace("-", "_")) in set().union(*map(imported, folders))


@pytest.mark.parametrize("name", sorted(declared() | declared(*EXTRAS, "dev")))
def test_every_dependency_has_its_reason(name: str) -> None:
    assert f"| {name} " in (ROOT / "docs" / "dependencies.md").read_text("utf-8")


def test_keys_are_documented() -> None:
    from scaletest.broker import keys
    from scaletest.broker.scripts import CONSTANTS

    page = (ROOT / "docs" / "reference" / "redis.md").read_text("utf-8")
    table = keys.__doc__ or ""
    constants = " ".join(map(str, CONSTANTS.values()))
    in_scripts = set(re.findall(r"\bscaletest:[a-z]+", constants))
    assert {"scaletest:replies", "scaletest:suspects", "scaletest:standstill"} <= in_scripts
    for key in in_scripts | set(re.findall(r"^(scaletest:[a-z]+)", table, re.MULTILINE)):
        assert re.search(rf"^{key}\b", table, re.MULTILINE), key
        assert f"`{key}" in page
    # and each key of a queue
    parts = set(re.findall(r"^scaletest:queue:<q>:([a-z]+)", table, re.MULTILINE))
    source = (ROOT / "scaletest" / "broker" / "keys.py").read_text("utf-8")
    assert parts == set(re.findall(r'_key_of\(OWN_QUEUE, ":([a-z]+)"\)', source))
    for part in parts:
        assert f"`scaletest:queue:<q>:{part}`" in page or f"`:{part}`" in page


def test_the_cost_of_every_script_call_is_documented() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "scaletest").rglob("*.py")]
    scripts = {name for text in sources for name in re.findall(r'\bscript\("(\w+)"\)', text)}
    page = (ROOT / "docs" / "reference" / "redis.md").read_text("utf-8")
    table = page.split("| script |")[1].split("\n\n")[0]
    documented = {
        name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert documented == scripts != set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    # grimp reads imports inside functions and those for type checkers too
    graph = grimp.build_graph("scaletest", "scaletest_workers", cache_dir=None)
    circles = [
        (module, imported)
        for module in sorted(graph.modules)
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.find_shortest_chain(imported, module)
    ]
    assert graph.modules and circles == []


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_print_through_one_function() -> None:
    """It makes foreign texts harmless; what is printed past it would reach the terminal as it
    is.
    """
    printing = {"print", "print_exc", "traceback.print_exc"}
    printing |= {f"click.{name}" for name in ("echo", "secho", "confirm", "prompt")}
    for path in (ROOT / "scaletest").rglob("*.py"):
        if path != ROOT / "scaletest" / "cli" / "output.py":
            nodes = ast.walk(ast.parse(path.read_bytes()))
            called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
            assert not called & printing, f"{path} prints by itself: use scaletest.cli.output"
