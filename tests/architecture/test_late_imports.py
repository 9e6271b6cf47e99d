"""A function imports only what its module does not load anyway: a late import that saves nothing hides a need."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache

from tests.architecture.test_door import DOORS, parts_of
from tests.architecture.test_shape import source_modules

FRAMES = frozenset({"treadle.workspace.commands.guard", "treadle.workspace.copies.upper"})
"""Programs of their own, whose modules are loaded without the packages around them."""


def _module_name(path: str) -> str:
    return f"treadle.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def _runs(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports that run, each with whether a function has to be called for it; none that is only for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (found for other in child.orelse for found in _runs(other, inside=inside))
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _runs(child, inside=inside or function)


def _targets(node: ast.Import | ast.ImportFrom, known: Mapping[str, object]) -> Iterator[str]:
    """The modules that an import loads: for a name of a door the one that the name stands for."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    module = node.module or ""
    door = module.removeprefix("treadle.door.")
    places = parts_of(door)[1] if door in DOORS else {}
    for alias in node.names:
        inner = f"{module}.{alias.name}"
        yield inner if inner in known else places.get(alias.name, module)


@cache
def _imports() -> Mapping[str, tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]]:
    return {_module_name(path): tuple(_runs(tree, inside=False)) for path, tree in source_modules()}


def loaded_with(name: str, imports: Mapping[str, tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]]) -> set[str]:
    """All that loading a module loads, as far as our own source says it, the module left out."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        waiting += [one.rpartition(".")[0]] if "." in one else []
        waiting += [target for node, late in imports.get(one, ()) if not late for target in _targets(node, imports)]
    return found - {name}


def needless(imports: Mapping[str, tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]]) -> list[str]:
    """Each import in a function of what is loaded with the function's module."""
    found = []
    for name, nodes in imports.items():
        late = [node for node, inside in nodes if inside]
        loaded = loaded_with(name, imports) if late else set()
        found += [f"{name}:{node.lineno}" for node in late if set(_targets(node, imports)) <= loaded]
    return found


def test_no_function_imports_what_its_module_has_loaded() -> None:
    found = [place for place in needless(_imports()) if place.partition(":")[0] not in FRAMES]
    assert found == [], "Import these at the top: they are loaded anyway."


def test_what_a_neighbour_loads_is_found() -> None:
    def parsed(**sources: str) -> Mapping[str, tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]]:
        return {name: tuple(_runs(ast.parse(text), inside=False)) for name, text in sources.items()}

    late = "def f():\n    import json\n"
    assert needless(parsed(one=f"import two\n{late}", two="import json")) == ["one:3"]
    assert needless(parsed(one=f"import two\n{late}", two="def g():\n    import json")) == []
    types = "if TYPE_CHECKING:\n    import json\n"
    assert needless(parsed(one=f"{types}{late}")) == []
