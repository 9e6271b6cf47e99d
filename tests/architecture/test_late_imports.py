"""A function imports only what its module does not load anyway, and what a start is spared by that.

A late import that spares nothing hides a need.
"""

import ast
import asyncio
import json
import signal
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_door import DOORS, parts_of
from tests.architecture.test_imports import DRIVER as REQUEST_DRIVER
from tests.architecture.test_shape import source_modules
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model
from treadle.cli.task_words import COMMANDS
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DRIVER = (sys.executable, str(Path(__file__).with_name("starts_driver.py")))
TABLE = Path(__file__).with_name("late_imports.txt")
PATIENCE = 60.0
AT_ONCE = 6
QUIET = 0.7
"""Seconds in which a program that loads something would load more."""

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


def _all_of(node: ast.Import | ast.ImportFrom, known: Mapping[str, object]) -> set[str]:
    """The modules that an import loads, with the door that a name is taken from."""
    door = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    return {*_targets(node, known), *([door] if door.removeprefix("treadle.door.") in DOORS else [])}


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
        waiting += [target for node, late in imports.get(one, ()) if not late for target in _all_of(node, imports)]
    return found - {name}


def needless(imports: Mapping[str, tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]]) -> list[str]:
    """Each import in a function of what is loaded with the function's module."""
    found = []
    for name, nodes in imports.items():
        late = [node for node, inside in nodes if inside]
        loaded = loaded_with(name, imports) if late else set()
        found += [f"{name}:{node.lineno}" for node in late if _all_of(node, imports) <= loaded]
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


class Starts:
    """Starts of the program, and which of its modules each has loaded when it is ready."""

    def __init__(self, folder: Path) -> None:
        self.loaded: dict[str, frozenset[str]] = {}
        self._folder = folder
        self._program = Program(folder / "home")
        self._room = asyncio.Semaphore(AT_ONCE)

    def _driver(self, name: str) -> tuple[str, ...]:
        return (*DRIVER, str(self._folder / name))

    def _read(self, name: str) -> None:
        self.loaded[name] = frozenset((self._folder / name).read_text().split())

    async def _settle(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Read what a program has loaded when it loads no more, with what it loads in advance behind its start."""
        before, file = "", self._folder / name
        async with asyncio.timeout(PATIENCE):
            while not before or file.read_text() != before:
                before = file.read_text() if file.exists() else ""
                process.send_signal(signal.SIGUSR1)
                await asyncio.sleep(QUIET)
        self._read(name)

    async def command(self, *words: str) -> None:
        """A command to its end."""
        name = "-".join(words)
        async with self._room:
            await self._program.run(*words, command=self._driver(name), cwd=self._folder)
        self._read(name)

    async def request(self) -> None:
        """A task to its first request."""
        async with self._room, ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hi."),)),))) as server:
            flags = (*model(server), "-C", str(self._folder))
            await self._program.run("-p", "Hi.", *flags, command=(*REQUEST_DRIVER, str(self._folder / "request")))
        self._read("request")

    async def paint(self) -> None:
        """A terminal before anything is typed."""
        async with ScriptedServer(Script(turns=())) as server:
            flags = (*model(server), "-C", str(self._folder))
            async with on_terminal(self._program, *flags, command=self._driver("paint")) as terminal:
                await terminal.until_shown("? for keys")
                await self._settle("paint", terminal.process)

    async def editor(self) -> None:
        """The program of an editor before a session."""
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        process = await asyncio.create_subprocess_exec(
            *self._driver("editor"),
            "acp",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._program.environment,
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - for the types
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        await process.stdout.readline()
        await self._settle("editor", process)
        process.kill()
        await process.wait()


@pytest.fixture
async def starts(tmp_path: Path) -> Mapping[str, frozenset[str]]:
    """What each start loads; the page is left out, as it loads in advance what its screens need."""
    found = Starts(tmp_path)
    looks = (["--version"], ["--help"], ["sessions"], ["config"], ["doctor"], ["policy", "explain", "ls"])
    async with asyncio.TaskGroup() as group:
        for words in (*looks, *([name, "--help"] for name in COMMANDS)):
            group.create_task(found.command(*words))
        for one in (found.request, found.paint, found.editor):
            group.create_task(one())
    return found.loaded


def unexplained(starts: Mapping[str, frozenset[str]]) -> set[tuple[str, str]]:
    """The late imports of our own modules that spare none of the starts anything."""
    found = set()
    imports = _imports()
    for name, nodes in imports.items():
        targets = {target for node, late in nodes if late for target in _targets(node, imports)} & set(imports)
        those = [loaded for loaded in starts.values() if name in loaded]
        found |= {(name, target) for target in targets if all(target in loaded for loaded in those)}
    return {(name, target) for name, target in found if name not in FRAMES}


async def test_what_a_function_imports_spares_a_start_or_has_a_reason(starts: Mapping[str, frozenset[str]]) -> None:
    rows = [row.split(maxsplit=3) for row in TABLE.read_text().splitlines() if row and not row.startswith("#")]
    known = {(name, target) for name, target, *_ in rows}
    found = {tuple(part.removeprefix("treadle.") for part in pair) for pair in unexplained(starts)}
    assert sorted(found - known) == [], (
        f"No start that is measured is spared anything: import these at the top, or give {TABLE.name} a reason."
    )
    assert sorted(known - found) == [], f"Take these out of {TABLE.name}: a start is spared them."
