"""Small faults put into a package, one at a time: the tests beside it must notice each of them.

`python -m tests.rehearsal.soak mutants --package policy --seed 7 --count 40` tries 40 faults of one package (`PACKAGES`
names each with the tests that must notice) and prints those that nothing noticed. Without `--package` it is the engine.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
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

LIMIT, LIMIT_BESIDE = 300, 60
"""Seconds that all tests have, and those of the module, which run first: a fault that makes them hang is noticed."""

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


def sample(seed: int, count: int, package: str = "engine") -> int:
    """Try so many faults of a package; prints those that no test noticed, and gives their number."""
    patterns, tests = PACKAGES[package]
    files = sorted({path for pattern in patterns for path in (ROOT / "src" / "treadle").glob(pattern)})
    every = [(path, *fault) for path in files for fault in faults(path.read_text(encoding="utf-8"))]
    chosen = sorted(every, key=lambda fault: _rank(seed, *fault))[:count]
    survived = 0
    for number, (path, line, name, source) in enumerate(chosen, 1):
        file = path.relative_to(ROOT / "src")
        noticed = _noticed(file, source, _beside(file, tests), LIMIT_BESIDE) or _noticed(file, source, tests, LIMIT)
        survived += not noticed
        sys.stdout.write(f"{number}/{len(chosen)} {path.name}:{line} {name}: {'noticed' if noticed else 'SURVIVED'}\n")
        sys.stdout.flush()
    sys.stdout.write(f"mutants: {len(chosen) - survived} of {len(chosen)} noticed (of {len(every)} possible)\n")
    return survived


def _rank(seed: int, path: Path, line: int, name: str, source: str) -> bytes:
    """Rank a fault by chance, but by itself: the same seed takes the same ones, also when other files change."""
    return sha256(f"{seed} {path.relative_to(ROOT)} {line} {name} {source}".encode()).digest()


def _beside(file: Path, tests: Sequence[str]) -> list[str]:
    """Name the tests that are called after a module, or that import it."""
    module = ".".join(file.with_suffix("").parts)
    found = (path for folder in tests for path in sorted((ROOT / folder).rglob("test_*.py")))
    return [
        str(path.relative_to(ROOT))
        for path in found
        if file.stem in path.stem or re.search(rf"\b{re.escape(module)}\b", path.read_text(encoding="utf-8"))
    ]


def _noticed(file: Path, source: str, tests: Sequence[str], limit: int) -> bool:
    if not tests:
        return False
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(
            ROOT / "src" / "treadle", Path(directory, "treadle"), ignore=shutil.ignore_patterns("__pycache__")
        )
        Path(directory, file).write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": directory, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return limit == LIMIT  # the others may take so long by themselves
        return ended.returncode != 0
