"""No file needs itself on a way around: what a module imports, late or at the top, never leads back to it."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tests.architecture.test_shape import source_modules


def _name(path: str) -> str:
    return "treadle." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").removesuffix("__init__")


@cache
def graph() -> Mapping[str, frozenset[str]]:
    """The modules that each module imports when it runs, also in its functions; not what only types name."""
    trees = {_name(path).rstrip("."): tree for path, tree in source_modules()}
    found = {name: frozenset(_imported(tree, trees)) - {name} for name, tree in trees.items()}
    # The library is a name of the package that is loaded where a program asks for it.
    return {**found, "treadle": found["treadle"] - {"treadle.library"}}


def _imported(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in _run_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner if inner in known else node.module,) if name in known)


def _is_for_types(node: ast.AST) -> bool:
    return "TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", ""))


def _run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs: a block for the types alone never does."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and any(_is_for_types(part) for part in ast.walk(child.test)):
            continue
        yield from _run_nodes(child)


def circles(edges: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Find the groups of modules of which each leads to each other."""
    reached: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        reached[name] = lowest[name] = len(reached)
        stack.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in reached:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], reached[other])
        if lowest[name] == reached[name]:
            at = stack.index(name)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(edges):
        if name not in reached:
            visit(name)
    return found


def test_no_file_leads_back_to_itself() -> None:
    found = circles(graph())
    assert found == [], "Move what two of them share into a module of its own: " + "; ".join(map(", ".join, found))


def test_a_circle_is_found_however_long_it_is() -> None:
    def edges(pairs: Sequence[str]) -> Mapping[str, frozenset[str]]:
        names = {name for pair in pairs for name in pair}
        return {name: frozenset(pair[1] for pair in pairs if pair[0] == name) for name in names}

    assert circles(edges(["ab", "bc", "ca", "cd", "de"])) == [["a", "b", "c"]]
    assert circles(edges(["ab", "bc", "ac"])) == []
    late = ast.parse("def one():\n    from treadle.cli import main\nif TYPE_CHECKING:\n    import treadle.library\n")
    known = {"treadle.cli.main": late, "treadle.library": late}
    assert list(_imported(late, known)) == ["treadle.cli.main"]
