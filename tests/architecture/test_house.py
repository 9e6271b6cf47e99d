"""What the source is to stay: functions that a screen shows, parts that need no later name, ports with few members."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.architecture.test_shape import source_modules, tabular_lines
from treadle.app.session.own_commands.slash_commands import SLASH_TABLE
from treadle.app.slash import handler_of
from treadle.tools.tool_catalogue import SPECS
from treadle.tui.session.entered_lines import DoCommand, parse_input

LONGEST = 59
MOST_MEMBERS = 5
WIDE_PORTS = {
    "FileAccess": "what an editor reads and saves in the place of the disk: the calls of a file system",
    "FleetEngine": "what hands out the tasks of a fleet: six calls, as every engine of that kind has them",
    "ServerHost": "what an MCP client is asked for, by the protocol",
    "SessionAccess": "an open session, here or in another process: what surfaces can do with it",
    "SessionPort": "the session, to the loop that is a part of it",
    "_Editor": "the input line, to the commands that are entered there",
    "WireFormat": "how one API is written and read",
}
TOOLS_BY_NAME = {
    "app/config/foreign_tools.py": "a table of others' names beside ours",
    "app/importing/cline_task.py": "a table of others' names, which ours are",
    "app/importing/foreign_permissions.py": "a table of others' names beside ours",
    "app/session/files/edit_ledger.py": "a format that has the name of its tool",
    "editing/edit_results.py": "a format that has the name of its tool",
    "headless/frames.py": "a table of the argument that is the answer; surfaces see no tools",
    "headless/host_asking.py": "surfaces see no tools",
    "parsing/aliases.py": "a table of what models write beside our names",
    "policy/policy_rows.py": "the policy sees no tools",
    "present/words.py": "a table of verbs; what a person sees knows no tools",
    "protocol/tools.py": "what a call does to the turn has the names of two tools",
}
"""Files that name a tool by a string, each with its reason."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    """Every function of the source, with its file."""
    for file, tree in source_modules():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield file, node


def test_a_screen_shows_every_function_whole() -> None:
    long = {
        f"{file}: {node.name}": lines
        for file, node in functions()
        if (lines := (node.end_lineno or 0) - node.lineno + 1 - tabular_lines(node)) > LONGEST
    }
    assert long == {}, "Split it by meaning."


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions inside."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def knots(function: Function) -> Iterator[str]:
    """The names that a function inside uses, and that are given their first value below it."""
    bound: dict[str, int] = {}
    inner: list[Function | ast.Lambda] = []
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = min(node.lineno, bound.get(node.id, node.lineno))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner.append(node)
            if isinstance(node, Function):
                bound[node.name] = min(node.lineno, bound.get(node.name, node.lineno))
    for node in inner:
        own = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        own |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        for used in ast.walk(node):
            if not (isinstance(used, ast.Name) and isinstance(used.ctx, ast.Load)) or used.id in own:
                continue
            if bound.get(used.id, 0) > (node.end_lineno or node.lineno):
                yield used.id


def test_nothing_closes_over_a_name_that_gets_its_value_later() -> None:
    found = [f"{file}: {node.name}: {name}" for file, node in functions() for name in sorted(set(knots(node)))]
    assert found == [], "Build the parts in an order that needs no name before it exists."


def members(node: ast.ClassDef) -> int:
    """How many things a port asks for."""
    names = {one.name for one in node.body if isinstance(one, Function)}
    names |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    return len(names)


def test_a_port_asks_for_few_things() -> None:
    wide = {
        node.name
        for _, tree in source_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)
        and members(node) > MOST_MEMBERS
    }
    assert wide == set(WIDE_PORTS), "A port has what one user of it needs. Where it has more, say why it is one thing."


def test_every_slash_command_has_what_does_it() -> None:
    idle = [
        row.name
        for row in SLASH_TABLE
        if handler_of(row.name) is None and isinstance(parse_input(f"/{row.name} 1"), DoCommand)
    ]
    assert idle == [], "Give it a handler in app/slash, or a line of its own in tui/session/entered_lines.py."


def test_few_files_have_the_name_of_another() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file, _ in source_modules():
        places[file.rpartition("/")[2]].append(file)
    same = {name: files for name, files in places.items() if len(files) > 1 and name != "__init__.py"}
    assert same == {}, "Find a name that tells the file apart."


def test_no_tool_is_named_by_a_string() -> None:
    tools = set(SPECS)
    found: dict[str, set[str]] = defaultdict(set)
    for file, tree in source_modules():
        if file in ("tools/declarations.py", "protocol/tool_names.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in tools:
                found[file].add(node.value)
    assert set(found) == set(TOOLS_BY_NAME), f"Name it by its declaration: {dict(found)}"


def test_nobody_collects_a_process_that_asyncio_waits_for() -> None:
    """Before Python 3.13 `send_signal` may do so, and the status is 255 then; `os.kill` does not."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in source_modules()
        if "create_subprocess_" in ast.unparse(tree)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("send_signal", "terminate", "kill")
        and ast.unparse(node.func.value) not in ("os", "self")
    ]
    assert found == []
