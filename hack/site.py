"""Builds the documentation as a site that works without a network, also from file://.

The pages are those of docs/, the README and a few others, as they stand. Links to what is no page
of the site, such as source files, go to the repository.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from os.path import normpath, relpath
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "site"
# Section -> page, without its suffix, and what the navigation calls it.
NAVIGATION = {
    "Start": {
        "tutorial": "First steps",
        "how-to/troubleshooting": "Troubleshooting, INVALID",
        "what-it-does-not-do": "What it does not do",
    },
    "Scale a program": {
        "how-to/validate": "Measure",
        "how-to/thresholds": "Thresholds, plans, settings",
        "how-to/compare": "Compare two versions",
        "how-to/pipelines": "Pipelines",
        "how-to/runs": "Keep and watch runs",
        "how-to/ui": "Look in a browser",
        "how-to/python": "From Python",
        "how-to/workers": "Workers and Redis",
        "how-to/client": "Load a queue",
        "how-to/rq": "RQ, Celery, Dramatiq",
    },
    "Scale a service": {
        "how-to/service": "Double the replicas",
        "how-to/saturate": "Find the load it takes",
        "how-to/judge": "Judge results you have",
    },
    "Devices": {
        "how-to/share-a-gpu": "Share a GPU",
        "how-to/gpu-workloads": "Transcodes and PyTorch",
    },
    "Kubernetes": {
        "how-to/kubernetes": "Run it",
        "how-to/images": "Images",
        "how-to/production": "In production",
        "charts/scaletest/README": "The chart",
        "how-to/from-the-original": "From Intel's tester",
    },
    "Autoscale": {"how-to/autoscale": "Which rule"},
    "Benchmarks": {
        "how-to/benchmarks": "Run benchmarks",
        "how-to/operator": "As Kubernetes objects",
        "how-to/from-kube-perftest": "From kube-perftest",
    },
    "Lifecycle": {
        "how-to/lifecycle": "How fast workloads start",
        "how-to/from-runai": "From Run:ai",
    },
    "Understand": {
        "explanation/causes": "What stops it",
        "explanation/cause-evidence": "What backs a cause",
        "explanation/cause-statistics": "How sure causes are",
        "explanation/measuring": "How runs measure",
        "explanation/engine": "The queue engine",
        "statistics": "Statistics",
        "explanation/saturation-statistics": "Statistics of saturations",
        "results/error-rates": "Error rates",
        "results/README": "Performance",
        "results/at-scale": "At scale",
    },
    "Reference": {
        "reference/cli": "Commands",
        "reference/python": "Python",
        "reference/benchmarks": "Benchmark kinds",
        "reference/reports": "Reports",
        "reference/metrics": "Metrics",
        "reference/http": "HTTP",
        "reference/redis": "Keys in Redis",
    },
    "Develop": {
        "CONTRIBUTING": "Contribute",
        "SECURITY": "Security",
        "architecture": "Architecture",
        "how-to/extend": "Extend it",
        "examples/README": "Example package",
        "dependencies": "Dependencies",
        "how-to/release": "Publish a release",
        "CHANGELOG": "Changes",
    },
}
# Pages outside docs/, and where they are in the site.
OTHERS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
    "charts/scaletest/README.md": "charts/scaletest/README.md",
}
# What a page shows or offers, beside other pages.
SUFFIXES = {".md", ".svg", ".webp", ".jsonl", ".json"}
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(?=[)#])")
CONFIGURATION = """
project = html_title = "scaletest"
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False
html_theme = "furo"
html_copy_source = html_show_sphinx = html_show_copyright = False
# it would fetch the pages that it found, which a browser refuses to do with files
html_show_search_summary = False
html_search_scorer = "scorer.js"
"""
# What people look for is a guide whose title has their words, not a reference that has every word.
SCORER = r"""
const asked = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\W+/);
const isGuide = page => /^(how-to|tutorial)/.test(page);
const isIn = title => word => word.length > 2 && title.toLowerCase().includes(word);
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + 10 * asked.filter(isIn(title)).length + (isGuide(page) ? 20 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
"""


# What axe asks of Sphinx and Furo: levels of headings, and that a keyboard can scroll.
REPAIRS = {
    ' role="heading"': ' role="heading" aria-level="2"',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


class SiteFailed(Exception):
    """The site was not built, or with warnings."""


def files_of_site() -> dict[str, str]:
    """Map each file of the site: its path in the repository, and its path in the site."""
    found = dict(OTHERS)
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.suffix in SUFFIXES:
            found[str(path.relative_to(ROOT))] = str(path.relative_to(ROOT / "docs"))
    return found


def copy_pages(folder: Path, repository: str) -> None:
    """Copy all pages into this folder, with links that are right there."""
    files = files_of_site()
    for source, place in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copy(ROOT / source, path)
            continue

        def lead(link: re.Match[str], source: str = source, place: str = place) -> str:
            target = normpath(Path(source).parent / link[1])
            if target in files:
                return relpath(files[target], Path(place).parent)
            if not (ROOT / target).exists():
                return link[1]  # of which the build will complain
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{repository}/{kind}/main/{target}"

        path.write_text(LINK.sub(lead, (ROOT / source).read_text("utf-8")), "utf-8")


def navigation() -> str:
    """Write the sections as the first page has them."""
    lines = []
    for section, pages in NAVIGATION.items():
        lines += ["", "```{toctree}", ":hidden:", f":caption: {section}", ""]
        lines += [f"{name} <{page}>" for page, name in pages.items()]
        lines += ["```"]
    return "\n".join([*lines, ""])


def build(output: Path) -> None:
    """Build the site into this folder. SiteFailed where anything is wrong, with what it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with tempfile.TemporaryDirectory(prefix="scaletest-site-") as name:
        folder = Path(name)
        copy_pages(folder, project["urls"]["Repository"])
        (folder / "conf.py").write_text(CONFIGURATION, "utf-8")
        (folder / "scorer.js").write_text(SCORER, "utf-8")
        with (folder / "index.md").open("a", encoding="utf-8") as index:
            index.write(navigation())
        built = folder / "_build"
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ".", built.name],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SiteFailed(done.stdout.replace(f"{folder}/", ""))
        for page in built.rglob("*.html"):
            text = page.read_text("utf-8")
            for written, accessible in REPAIRS.items():
                text = text.replace(written, accessible)
            page.write_text(text, "utf-8")
        shutil.rmtree(built / ".doctrees")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(built, output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=OUTPUT, help="a folder")
    output = parser.parse_args().output
    try:
        build(output)
    except SiteFailed as error:
        sys.exit(f"{error}\nerror: the site has warnings: mend what the lines above name")
    print(f"open {output / 'index.html'}")


if __name__ == "__main__":
    main()
