"""The public names of `import scaletest`: documented, typed and cheap to import."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import scaletest
from hack import python_reference as reference
from scaletest.model import errors as errors_module
from scaletest.model.errors import ScaletestError

ROOT = Path(__file__).parents[3]
STANDARD = sys.stdlib_module_names
NAMES = reference.public_names()
DOCUMENTED = [
    member
    for name in NAMES
    if not reference.is_error(getattr(scaletest, name))
    for member in reference.list_documented(name, getattr(scaletest, name))
]
CALLED = [member for member in DOCUMENTED if not member.is_attribute]


@pytest.mark.parametrize("member", CALLED, ids=lambda member: member.title)
def test_a_public_name_has_text_an_example_and_its_errors(member: reference.Documented) -> None:
    doc = reference.parse_docstring(member.text)
    assert doc.text
    assert ast.parse(doc.example).body
    assert doc.raises is not None, "end its docstring with Raises:, or with `Raises: nothing`"
    for error in doc.raises:
        assert issubclass(getattr(scaletest, error), ScaletestError)


def test_errors_are_the_tree_of_their_module() -> None:
    errors = {name for name in NAMES if reference.is_error(getattr(scaletest, name))}
    assert errors == {name for name, _ in inspect.getmembers(errors_module, reference.is_error)}
    assert all(getattr(scaletest, name).__doc__ for name in errors)


def test_type_checkers_see_what_is_there() -> None:
    stub = ast.parse((ROOT / "scaletest" / "__init__.pyi").read_text("utf-8"))
    typed = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            typed |= {alias.asname: node.module for alias in node.names}
    assert typed == scaletest._MODULES


def test_names_are_loaded_when_they_are_used() -> None:
    code = (
        "import sys; before = set(sys.modules); import scaletest;"
        " print(*set(sys.modules) - before); print(scaletest.Client.__name__)"
    )
    lines = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    loaded = {name for name in lines[0].split() if name.split(".")[0] not in STANDARD}
    assert (loaded, lines[1]) == ({"scaletest"}, "Client")


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(scaletest, "Clint")
    assert {*NAMES, "__version__"} <= {*dir(scaletest)}
