"""What tests may not do: measure the machine, decide for themselves what may be missing, or need programs of others."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LEAST, WHOLE, part_of, rest_of
from tests.needed import PEER_MODULES

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
CLOCKS = frozenset({"monotonic", "perf_counter", "process_time", "monotonic_ns", "perf_counter_ns", "thread_time"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SHORT, LONG = 1.5, 60.0
"""Seconds: a limit below the first is meant to run out, one above the second is only there for what hangs."""


def calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                yield node


def place(file: Path, node: ast.expr | ast.stmt) -> str:
    return f"{file.relative_to(TESTS)}:{node.lineno}"


def timed(tree: ast.AST) -> Iterator[ast.Assert]:
    """Find what is asserted of a clock, directly or by a name that a clock was read into."""
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        read = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and any(calls(node.value, *CLOCKS))
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and (
                any(calls(node, *CLOCKS))
                or any(isinstance(one, ast.Name) and one.id in read for one in ast.walk(node.test))
            ):
                yield node


def limited(tree: ast.AST) -> Iterator[ast.Call]:
    """Find limits in seconds that a slow machine may exceed and that are not meant to run out."""
    for call in (*calls(tree, "timeout"), *calls(tree, "wait_for")):
        given = call.args[-1:] + [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
        for one in given:
            if isinstance(one, ast.Constant) and isinstance(one.value, int | float) and SHORT <= one.value < LONG:
                yield call


def sampled_without_rows(tree: ast.AST) -> Iterator[ast.stmt]:
    """Find what is marked as a test of which some rows are run, and has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            marks = node.decorator_list
            rows = not isinstance(node, ast.ClassDef) and (len(marks) > 1 or node.args.args)
            if not rows and any(any(calls(mark, "sample")) for mark in marks):
                yield node


def own_skips(tree: ast.AST) -> Iterator[ast.Call]:
    """Find where a test looks by itself for a program or package, to be skipped without it."""
    yield from calls(tree, "importorskip")
    for call in calls(tree, "skipif"):
        if any(calls(call, "which", "find_spec", "probe")):
            yield call
    for call in calls(tree, "skip"):
        text = "".join(one.value for one in ast.walk(call) if isinstance(one, ast.Constant) and type(one.value) is str)
        if "not installed" in text:
            yield call


def found(look: object, *words: str) -> list[str]:
    """Look through all tests in which one of the words stands: what is looked for has one of them as its name."""
    assert callable(look)
    texts = ((file, file.read_text()) for file in FILES if file.name not in ("test_tests.py", "needed.py"))
    near = ((file, text) for file, text in texts if any(word in text for word in words))
    return [place(file, node) for file, text in near for node in look(ast.parse(text))]


def test_no_test_asserts_how_long_something_took() -> None:
    assert found(timed, *CLOCKS) == []
    bad = "async def test() -> None:\n    began = time.monotonic()\n    assert time.time() - began < 5\n"
    assert len(list(timed(ast.parse(bad)))) == 1
    assert len(list(timed(ast.parse("def test() -> None:\n    assert time.perf_counter() < end\n")))) == 1


def test_no_test_gives_up_before_a_slow_machine_is_done() -> None:
    assert found(limited, "timeout", "wait_for") == []
    assert len(list(limited(ast.parse("asyncio.timeout(10)\nasyncio.wait_for(x, 5.0)\nasyncio.timeout(0.01)")))) == 2


def test_a_sample_is_taken_of_the_rows_of_a_test() -> None:
    """Above a class, or where there are no rows, the mark does nothing, and says that it does."""
    assert found(sampled_without_rows, "sample") == []
    bad = "@mark.sample(2)\nclass Case: ...\n\n\n@mark.sample(2)\ndef test() -> None: ...\n"
    assert len(list(sampled_without_rows(ast.parse(bad)))) == 2


def test_the_profile_of_hypothesis_is_one_for_all() -> None:
    def own(tree: ast.AST) -> Iterator[ast.Call]:
        for call in calls(tree, "settings"):
            if {"deadline", "derandomize", "database"} & {keyword.arg for keyword in call.keywords}:
                yield call

    assert found(own, "settings") == []
    assert len(list(own(ast.parse("@settings(max_examples=5, deadline=None)\ndef test() -> None: ...")))) == 1


def test_what_a_test_needs_is_named_in_one_way() -> None:
    """`needs` and `require` of `tests/needed.py`, which CI does not skip."""
    assert found(own_skips, "importorskip", "skipif", "skip") == []
    bad = (
        'importorskip("x")',
        'pytest.mark.skipif(which("x") is None, reason="")',
        'pytest.skip("x is not installed")',
    )
    assert len(list(own_skips(ast.parse("\n".join(bad))))) == 3


def _name_of(file: Path) -> str:
    return ".".join(("tests", *file.relative_to(TESTS).with_suffix("").parts)).removesuffix(".__init__")


def _near_peers() -> list[Path]:
    """Find the test modules that name a package of the peers, or import a module of the tests that does."""
    texts = {file: file.read_text() for file in FILES if file.name not in ("test_tests.py", "needed.py")}
    near = {file for file, text in texts.items() if any(name in text for name in PEER_MODULES)}
    while further := {
        file for file, text in texts.items() if any(_name_of(one) in text for one in near) and file not in near
    }:
        near |= further
    return sorted(file for file in near if file.name.startswith("test_"))


def test_the_tests_are_collected_without_the_programs_of_others() -> None:
    near = _near_peers()
    assert {file.name for file in near} >= {"test_sdk.py", "test_sdk_callbacks.py"}
    flags = ("--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.without_peers")
    command = (sys.executable, "-m", "pytest", *flags, *map(str, near))
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    check = "import tests.without_peers, tests.needed as n; print([*map(n.missing, ('peers', *n.PEER_MODULES))])"
    told = subprocess.run((sys.executable, "-c", check), cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert told.stdout.count("not installed") == 1 + len(PEER_MODULES)
    assert "claude_agent_sdk is not installed" in done.stdout


tried: set[int] = set()


@settings(max_examples=400)
@given(st.integers())
def test_a_part_of_the_examples_is_tried(number: int) -> None:
    tried.add(number)
    assert len(tried) <= part_of(400)


def test_the_examples_are_scaled_in_one_place() -> None:
    """A fixed part of them here, and with `ANEW` all of them and others each time, as `make soak` tries them."""
    assert vars(test_a_part_of_the_examples_is_tried)["all_examples"] == 400
    assert part_of(400) == (400 if WHOLE else 100)
    assert [part_of(few) for few in (1, 8, LEAST)] == [1, 8, LEAST]
    assert settings().derandomize is not WHOLE


def test_what_is_left_to_the_rest_is_there() -> None:
    rest = [name.split("::") for name in rest_of()]
    trees = {file: ast.parse((TESTS.parent / file).read_text()) for file, *_ in rest}
    written = {
        (file, node.name) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    assert [f"{file} {names[-1]}" for file, *names in rest if (file, names[-1]) not in written] == []
