"""Small faults put into a package, one at a time: the tests beside it must notice each of them.

`python -m tests.rehearsal.soak mutants --package policy --seed 7 --count 40` tries 40 faults of one package (`PACKAGES`
names each with the tests that must notice) and prints those that nothing noticed. Without `--package` it is the engine.
`--module app/security/op_effects.py` (again for others) puts them into those files of the package alone. The faults
stand in a copy of the source, so a run that is killed leaves the checkout as it was.
"""

import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from compileall import compile_dir
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "engine": (
        [f"engine/**/{name}.py" for name in
         ("session", "perform", "tool_call", "model_call", "feeds", "track", "requests", "window")],
        ["tests/engine"],
    ),
    "policy": (["policy/**/*.py", "protocol/protected_names.py"], ["tests/policy"]),
    "store": (["store/**/*.py"], ["tests/store"]),
    "editing": (["editing/**/*.py"], ["tests/editing"]),
    "workspace/copies": (["workspace/copies/**/*.py"], ["tests/workspace"]),
    "web": (["web/**/*.py"], ["tests/web"]),
    "app": (["app/**/*.py"], ["tests/app"]),
}  # fmt: skip
"""By name: which files get faults, below the source, and which tests are run against each."""

LIMIT, TEST_LIMIT = 1200, 60
"""Seconds for all tests of a fault, and for each: one that hangs has noticed it, all that are late have not."""

_OTHER: dict[type[ast.AST], Any] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


def faults(source: str) -> Iterator[tuple[int, str, str]]:
    """Give the line, a name and the whole source of each fault that can be made."""
    for index, node in enumerate(ast.walk(ast.parse(source))):
        if _possible(node):
            tree = ast.parse(source)
            changed = next(one for at, one in enumerate(ast.walk(tree)) if at == index)
            name = _break(changed)
            yield getattr(node, "lineno", 0), name, ast.unparse(ast.fix_missing_locations(tree))


def _possible(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[operator]) | ast.BoolOp(op=operator) | ast.BinOp(op=operator):
            return type(operator) in _OTHER
        case ast.If() | ast.IfExp():
            return True
        case ast.Expr(value=ast.Call() | ast.Await()):
            return True
        case _:
            return False


def _break(node: ast.AST) -> str:
    match node:
        case ast.Compare(ops=[operator]):
            node.ops = [_OTHER[type(operator)]()]
            return f"{type(operator).__name__} turned round"
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator):
            node.op = _OTHER[type(operator)]()
            return f"{type(operator).__name__} turned round"
        case ast.If(test=test) | ast.IfExp(test=test):
            node.test = ast.UnaryOp(op=ast.Not(), operand=test)
            return "condition turned round"
        case ast.Expr():
            node.value = ast.Constant(value=None)
            return "statement left out"
        case _:
            raise AssertionError(node)


def sample(seed: int, count: int, package: str = "engine", modules: Sequence[str] = ()) -> int:
    """Try so many faults of a package, or of some modules of it; gives the number of those that no test noticed.

    Raises `SystemExit` where the tests fail without a fault, as they would seem to notice every one.
    """
    patterns, tests = PACKAGES[package]
    files = sorted({path for pattern in modules or patterns for path in (ROOT / "src" / "treadle").glob(pattern)})
    every = [(path, *fault) for path in files for fault in faults(path.read_text(encoding="utf-8"))]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as directory:
        shutil.copytree(ROOT / "src" / "treadle", Path(directory, "treadle"))
        compile_dir(directory, quiet=2)  # once: without that each run of tests would
        if _noticed(directory, tests):
            raise SystemExit(f"The tests of {package} fail without a fault.")
        for number, (path, line, name, source) in enumerate(chosen, 1):
            file = path.relative_to(ROOT / "src")
            Path(directory, file).write_text(source, encoding="utf-8")
            noticed = _noticed(directory, nearest_first(file, tests))
            shutil.copy2(path, Path(directory, file))
            survived += not noticed
            sys.stdout.write(f"{number}/{len(chosen)} {file}:{line} {name}: {'noticed' if noticed else 'SURVIVED'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"mutants: {len(chosen) - survived} of {len(chosen)} noticed (of {len(every)} possible)\n")
    return survived


def nearest_first(file: Path, tests: Sequence[str]) -> list[str]:
    """Order the files of tests: those that name the module, then its package, then the others."""
    module = ".".join(file.with_suffix("").parts)
    package, _, name = module.rpartition(".")

    def distance(path: Path) -> int:
        if path.stem == f"test_{name}":
            return 0
        text = path.read_text(encoding="utf-8")
        return 1 if module in text else 2 if package in text else 3

    found = sorted(path for folder in tests for path in (ROOT / folder).rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in sorted(found, key=distance)]


def _noticed(directory: str, tests: Sequence[str]) -> bool:
    """Whether a test fails with the source in this folder."""
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", f"--timeout={TEST_LIMIT}"]
    environment = {
        **os.environ,
        "PYTHONPATH": directory,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(directory, "examples")),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        try:
            return running.wait(LIMIT) != 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
