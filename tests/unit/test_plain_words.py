"""Plain words: names say what they hold, and expressions can be read at once.

Counted in the syntax trees. A limit holds for all packages together that are not in `EXEMPT`; a
failure lists file, line and word of everything that counts.
"""

from __future__ import annotations

import ast
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# Packages whose words are not plain yet. Take out a package that is rewritten; add none.
EXEMPT: set[str] = set()
# Files of finished packages whose words are not plain yet, by the beginning of their path.
EXEMPT_FILES: tuple[str, ...] = ()
# Names that hold anything, so they tell nothing.
FILLERS = {
    "one",
    "found",
    "given",
    "what",
    "told",
    "said",
    "seen",
    "made",
    "there",
    "held",
    "kept",
    "much",
    "words",
}
MOST_FILLERS = 20
MOST_FILLERS_IN_TESTS = 18
# Usual names, but vague: a few are fine.
VAGUE = {"item", "items", "row", "value", "result", "data", "obj", "entry", "element", "val", "res"}
MOST_VAGUE_PER_1000_LINES = 14
MOST_BRANCHES = 12
MANY_BRANCHES, MOST_WITH_MANY = 10, 0.02
MOST_CONDITIONAL_PER_1000_LINES = 15
MOST_FORMATTER_SKIPS = 10
BAD_BEGINNINGS = ("Of ", "That of", "Those of", "What is", "The same")

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Place(NamedTuple):
    """A word, or what breaks a rule, in a line of a file."""

    path: str
    line: int
    word: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.word}"


def trees_in(*folders: str) -> dict[str, ast.Module]:
    """The syntax tree of each file in these folders, by path."""
    paths: list[Path] = []
    for folder in folders:
        paths += (ROOT / folder).rglob("*.py")
    return {str(path.relative_to(ROOT)): ast.parse(path.read_bytes()) for path in sorted(paths)}


@cache
def sources() -> dict[str, ast.Module]:
    """The syntax tree of each file of `scaletest`, `workers` and `hack`, by path."""
    return trees_in("scaletest", "workers", "hack")


def package_of(path: str) -> str:
    """`hack`, `workers`, or a folder of `scaletest` with that folder's name."""
    first, *folders, _ = path.split("/")
    return "/".join([first, *folders[:1]]) if first == "scaletest" else first


def plain_sources() -> dict[str, ast.Module]:
    """Files of packages that are not exempt."""
    return {
        path: tree
        for path, tree in sources().items()
        if package_of(path) not in EXEMPT and not path.startswith(EXEMPT_FILES)
    }


def thousands_of_lines(paths: dict[str, ast.Module]) -> float:
    return sum((ROOT / path).read_bytes().count(b"\n") for path in paths) / 1000


def assigned(node: ast.AST) -> str | None:
    """The name that a node assigns: to a variable, a parameter, a function, a class or an
    import.
    """
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.ClassDef(name=name) | ast.alias(asname=str(name)):
            return name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return name
    return None


def assignments(trees: dict[str, ast.Module], names: set[str]) -> list[Place]:
    """Where one of these words is assigned; `_word`, `word_` and `Word` count as the word."""
    places = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            name = assigned(node)
            if name and name.strip("_").lower() in names:
                places.append(Place(path, getattr(node, "lineno", 0), name))
    return places


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield child
            yield from own_nodes(child)


def branches(function: ast.AST) -> int:
    """How many choices a reader follows in a function.

    Each `if`, `elif`, `for`, `while`, `except`, `case` and conditional expression is one; so is
    each `and` and `or` between two operands, and each `for` of a comprehension. A straight line has
    none.
    """
    count = 0
    single = (
        ast.If,
        ast.For,
        ast.AsyncFor,
        ast.While,
        ast.ExceptHandler,
        ast.match_case,
        ast.IfExp,
    )
    for node in own_nodes(function):
        if isinstance(node, (*single, ast.comprehension)):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def functions(trees: dict[str, ast.Module]) -> Iterator[tuple[int, Place]]:
    """Number of branches and place of each function and method."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                count = branches(node)
                yield count, Place(path, node.lineno, f"{node.name} has {count} branches")


def nested(trees: dict[str, ast.Module]) -> Iterator[Place]:
    """Comprehensions and conditional expressions inside another, and those with two `for`."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, (*COMPREHENSIONS, ast.IfExp)):
                continue
            if not isinstance(node, ast.IfExp) and len(node.generators) > 1:
                yield Place(path, node.lineno, "a comprehension with two for")
            inner = [child for child in ast.walk(node) if child is not node]
            if any(isinstance(child, (*COMPREHENSIONS, ast.IfExp)) for child in inner):
                yield Place(
                    path, node.lineno, "a comprehension or conditional expression inside another"
                )


def docstrings(trees: dict[str, ast.Module]) -> Iterator[Place]:
    """First lines of all docstrings."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) and (
                text := ast.get_docstring(node)
            ):
                yield Place(path, node.body[0].lineno, text.splitlines()[0])


def formatter_skips(trees: dict[str, ast.Module]) -> Iterator[Place]:
    for path in trees:
        with tokenize.open(ROOT / path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type == tokenize.COMMENT and "fmt: skip" in token.string:
                    yield Place(path, token.start[0], token.string)


def listed(places: list[Place]) -> str:
    return "\n".join(map(str, places))


def test_names_say_what_they_hold() -> None:
    places = assignments(plain_sources(), FILLERS)
    assert len(places) <= MOST_FILLERS, f"{len(places)} names are fillers:\n{listed(places)}"


def test_names_in_tests_say_what_they_hold() -> None:
    places = assignments(trees_in("tests"), FILLERS)
    assert len(places) <= MOST_FILLERS_IN_TESTS, (
        f"{len(places)} names are fillers:\n{listed(places)}"
    )


def test_vague_names_are_few() -> None:
    trees = plain_sources()
    places = assignments(trees, VAGUE)
    limit = MOST_VAGUE_PER_1000_LINES * thousands_of_lines(trees)
    assert len(places) <= limit, f"{len(places)}, {limit:.0f} may be:\n{listed(places)}"


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for path, tree in sources().items():
        if path.startswith("scaletest/api/"):
            continue  # a program knows these by their public names, and nothing inside imports them
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(Place(path, node.lineno, node.name))
    repeated = [uses for _, uses in sorted(places.items()) if len(uses) > 1]
    twice = list(chain.from_iterable(repeated))
    assert not twice, f"class names with two meanings:\n{listed(twice)}"


def test_functions_have_few_branches() -> None:
    counted = list(functions(plain_sources()))
    over = [place for count, place in counted if count > MOST_BRANCHES]
    assert not over, f"more than {MOST_BRANCHES} branches:\n{listed(over)}"
    many = [place for count, place in counted if count > MANY_BRANCHES]
    limit = MOST_WITH_MANY * len(counted)
    assert len(many) <= limit, f"{len(many)}, {limit:.0f} may be, have more:\n{listed(many)}"


def test_expressions_are_not_nested() -> None:
    places = list(nested(plain_sources()))
    assert not places, f"{len(places)} expressions to unpack:\n{listed(places)}"


def test_conditional_expressions_are_few() -> None:
    trees = plain_sources()
    places = [
        Place(path, node.lineno, "conditional expression")
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
    ]
    limit = MOST_CONDITIONAL_PER_1000_LINES * thousands_of_lines(trees)
    assert len(places) <= limit, f"{len(places)}, {limit:.0f} may be:\n{listed(places)}"


def test_the_formatter_is_not_turned_off() -> None:
    places = list(formatter_skips(plain_sources()))
    assert len(places) <= MOST_FORMATTER_SKIPS, f"{len(places)} unformatted:\n{listed(places)}"


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    places = [
        place for place in docstrings(plain_sources()) if place.word.startswith(BAD_BEGINNINGS)
    ]
    assert not places, f"begin with a verb or a noun:\n{listed(places)}"


def test_exempt_packages_exist() -> None:
    assert not EXEMPT - set(map(package_of, sources()))
    assert all(any(path.startswith(begin) for path in sources()) for begin in EXEMPT_FILES)


def test_branches_are_counted() -> None:
    source = """
def choose(a, b, c):
    if a and b and c:  # 3
        return [x for x in c if x]  # 1
    elif b or c:  # 2
        return a if b else c  # 1
    for x in c:  # 1
        while x:  # 1
            pass
    try:
        match a:
            case 1: pass  # 1
            case _: pass  # 1
    except ValueError: pass  # 1
    def inner():
        if a: pass
"""
    outer, inner = functions({"a.py": ast.parse(source)})
    assert (outer[0], inner[0]) == (12, 1)
