import ast
from collections.abc import Iterator
from pathlib import Path

import treadle
from treadle.app.errors.explanations import EXPLANATIONS, errors_page
from treadle.editing import ErrorCode
from treadle.protocol import errors
from treadle.protocol.errors import TreadleError
from treadle.protocol.models import ErrorKind

SOURCE = Path(treadle.__file__).parent
RAISED = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, TreadleError)}


def _codes(tree: ast.AST) -> Iterator[str]:
    """The texts that a call of an error class may give as its code."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        if name in RAISED - {"RefusedError"} or ast.unparse(node.func) == "super().__init__":
            first = node.args[0]
            choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            yield from (str(one.value) for one in choices if isinstance(one, ast.Constant) and "-" in str(one.value))


def test_every_error_that_the_program_raises_is_explained() -> None:
    files = [*SOURCE.rglob("*.py")]
    codes = {code for file in files for code in _codes(ast.parse(file.read_text()))}
    assert len(codes) > 40
    assert codes - EXPLANATIONS.keys() == set()


def test_every_failure_of_a_model_and_every_refused_edit_is_explained() -> None:
    codes = {*map(str, ErrorKind), *(f"edit-{code}" for code in ErrorCode)}
    assert codes - EXPLANATIONS.keys() == set()


def test_nothing_is_explained_that_does_not_happen() -> None:
    text = "".join(file.read_text() for file in SOURCE.rglob("*.py") if file.name != "explanations.py")
    kinds = {*map(str, ErrorKind), *(f"edit-{code}" for code in ErrorCode)}
    assert [code for code in EXPLANATIONS.keys() - kinds if f'"{code}"' not in text] == []


def test_the_page_of_errors_is_up_to_date() -> None:
    page = SOURCE.parents[1] / "docs" / "errors.md"
    assert page.read_text() == errors_page()
