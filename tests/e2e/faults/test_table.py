"""Every labelled case of these areas has a test that exists, or a reason why it has none yet."""

import ast
import json
import os
from pathlib import Path

import pytest

from tests.e2e.faults.table import AREAS, NOT_YET, PROVED

ROOT = Path(__file__).parents[3]
CASES = Path(os.environ.get("TREADLE_CASES", ROOT.parent / "shared" / "cases")) / "faults.jsonl"


def test_every_case_is_proved_or_known_to_be_open() -> None:
    if not CASES.exists():
        pytest.skip(f"the labelled cases are not here: {CASES}")
    rows = [json.loads(line) for line in CASES.read_text().splitlines()]
    wanted = {row["id"] for row in rows if row["area"] in AREAS}
    assert wanted == PROVED.keys() | NOT_YET.keys()


def test_no_case_is_both() -> None:
    assert PROVED.keys() & NOT_YET.keys() == set()


@pytest.mark.parametrize("path", sorted({test.partition("::")[0] for tests in PROVED.values() for test in tests}))
def test_the_tests_that_are_named_exist(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text())
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    named = {test.partition("::")[2] for tests in PROVED.values() for test in tests if test.startswith(f"{path}::")}
    assert named - defined == set()
