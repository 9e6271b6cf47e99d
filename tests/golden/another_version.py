"""Another Treadle: the source with every text that a model reads from it replaced, and every default changed.

What the log of an older session says must not depend on either. The upgrades of older logs are left as they are: they
hold the words and defaults of the version that wrote the log.
"""

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path

import treadle

SOURCE = Path(treadle.__file__).parent
WORDS = ("engine", "context", "tools", "app/prompts")
"""Packages with words that a model reads, or a person is asked."""

PROJECTIONS = ("context/xml_protocol.py", "context/media.py", "context/focus.py")
"""How a message is written for a kind of model, and what the notation of a checklist is: no words of the past."""

DEFAULTS = {"protocol/limits.py": ("Limits",), "app/config/layers.py": ("Settings", "BudgetSettings")}
"""Classes whose fields have the defaults of limits and settings."""

DELAYS = ("_FIRST_DELAY", "_LONGEST_DELAY")
RULES = ("replies", "guards", "turns", "window", "budgets")
"""Modules of the engine with delays, and with counts by which the machine decides."""


def write(folder: Path, *, rules: bool = False) -> Path:
    """Write the other version into a folder; gives the path to import it from. With `rules` it decides otherwise, too.

    What another version decides matters to no turn that has ended: what comes of the events of one that has not is
    decided again by the version that takes it up.
    """
    target = folder / "other" / "treadle"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in WORDS:
        for file in sorted((target / name).rglob("*.py")):
            if file.relative_to(target).as_posix() not in PROJECTIONS:
                _rewrite(file, _Words())
        for file in sorted((target / name).rglob("*.md")):
            declared, line, _ = file.read_text(encoding="utf-8").rpartition("---\n")
            file.write_text(f"{declared}{line}Quite other words.\n", encoding="utf-8")
    for name, classes in DEFAULTS.items():
        _rewrite(target / name, _Defaults(classes))
    for file in sorted((target / "engine").rglob("*.py")):
        if file.stem in RULES:
            _rewrite(file, _Constants(every=rules))
    return target.parent


def _rewrite(file: Path, change: ast.NodeTransformer) -> None:
    tree = change.visit(ast.parse(file.read_text(encoding="utf-8")))
    file.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")


PATTERNS = ("regex", "re.compile")


class _Words(ast.NodeTransformer):
    """Replaces each text that reads like prose; docstrings, patterns and names stay."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return node if ast.unparse(node.func) in PATTERNS else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and " " in node.value.strip() and any(map(str.isalpha, node.value)):
            return ast.Constant(f"quite other words ({len(node.value)})")
        return node


class _Defaults(ast.NodeTransformer):
    """Changes the numbers that the fields of these classes begin with."""

    def __init__(self, classes: Sequence[str]) -> None:
        self._classes = classes

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.generic_visit(node) if node.name in self._classes else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float):
            node.value = ast.Constant(_other(node.value.value))
        return node


class _Constants(ast.NodeTransformer):
    """Changes the delays of a module, or every number that it decides by."""

    def __init__(self, *, every: bool) -> None:
        self._every = every

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        wanted = self._every or ast.unparse(node.targets[0]) in DELAYS
        if wanted and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float):
            node.value = ast.Constant(_other(node.value.value))
        return node


def _other(value: float) -> float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value / 2
