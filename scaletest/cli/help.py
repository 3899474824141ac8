"""`scaletest help`: the guides of the documentation, as text."""

import re
from pathlib import Path

import cloup

import scaletest
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError

# In the order in which they are listed. A wheel carries them; a checkout has them in docs.
GUIDES = ("tutorial.md", "how-to/*.md", "explanation/*.md", "statistics.md", "what-*.md")
# Says to the tests how the block below it is run.
COMMENT = re.compile(r"^ *<!--.*?-->\n+", re.MULTILINE | re.DOTALL)


@cloup.command("help")
@cloup.argument("words", nargs=-1, metavar="[TOPIC]...")
def command(words: tuple[str, ...]) -> None:
    """Print a guide, or list them.

    TOPIC is the name of a guide, or words of its title or headings.

    \b
    scaletest help
    scaletest help compare
    scaletest help autoscaler
    """
    guides = read_guides()
    found = find_guides(guides, " ".join(words))
    if not found:
        raise UsageError(f"no guide about {' '.join(words)!r}", hint="list them: scaletest help")
    if len(found) == 1:
        echo(guides[found[0]].rstrip())
        return
    width = max(map(len, found))
    for name in found:
        echo(f"{name:{width}}  {guides[name].splitlines()[0].removeprefix('# ')}")


def read_guides() -> dict[str, str]:
    """Read the text of each guide, by its name."""
    package = Path(scaletest.__file__).parent
    folder = package / "docs" if (package / "docs").exists() else package.parent / "docs"
    paths = [path for pattern in GUIDES for path in sorted(folder.glob(pattern))]
    return {path.stem: COMMENT.sub("", path.read_text("utf-8")) for path in paths}


def find_guides(guides: dict[str, str], topic: str) -> list[str]:
    """Find a topic: as a name, else as words of titles, else as words of headings."""
    if topic in guides:
        return [topic]
    wanted = topic.lower().split()
    for pattern in (r"\A# .*", r"^#+ .*"):
        found = [
            name
            for name, text in guides.items()
            for headings in [" ".join(re.findall(pattern, text, re.MULTILINE)).lower()]
            if all(word in headings for word in wanted)
        ]
        if found:
            return found
    return []
