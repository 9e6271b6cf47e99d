"""Language servers: a real one, and one that publishes late, never, or nonsense."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.e2e.running import left_of, processes
from tests.needed import needs, ruff
from tests.workspace.diagnostics import servers

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.commands.wrapping import Wrapping
from treadle.workspace.diagnostics.checks import Diagnostics, Findings
from treadle.workspace.diagnostics.language_server import UNCONFINED, LanguageServer, ServerCommand, ServerConfinement
from treadle.workspace.diagnostics.problems import Diagnostic, Severity

RUFF = ruff()

Start = Callable[..., LanguageServer]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    started: list[LanguageServer] = []

    def start(
        *argv: str, name: str = "fake", confinement: ServerConfinement = UNCONFINED, **more: Any
    ) -> LanguageServer:
        variables = child_variables(os.environ)
        command = ServerCommand(
            name=name, argv=argv, patterns=("*.py",), root=str(tmp_path), variables=variables, **more
        )
        started.append(LanguageServer(command, confinement))
        return started[-1]

    yield start
    for server in started:
        await server.close()


def fake(start: Start, how: str, **more: Any) -> LanguageServer:
    return start(sys.executable, servers.__file__, how, **more)


@needs("ruff")
async def test_a_real_server_tells_what_an_edit_brought(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a b.py"
    file.write_text("import os\n\n\ndef one() -> str:\n    return os.sep\n")
    diagnostics = Diagnostics([start(str(RUFF), "server", name="ruff", seconds=60)])
    await diagnostics.before([str(file)])
    file.write_text("import os\n\nx = 1\n\n\ndef one() -> str:\n    return os.sep + two\n")
    problem = Diagnostic(
        path=str(file), line=7, column=21, severity=Severity.ERROR, message="Undefined name `two`", source="Ruff F821"
    )
    assert await diagnostics.after([str(file)]) == Findings(problems=(problem,))
    await diagnostics.before([str(file)])
    file.write_text("import os\n\nx = 1\n\n\n\n\ndef one() -> str:\n    return os.sep + two\n")
    assert await diagnostics.after([str(file)]) == Findings()


@pytest.mark.parametrize("how", ["versioned", "unversioned", "late"])
async def test_what_a_server_publishes_is_heard(how: str, tmp_path: Path, start: Start) -> None:
    server = fake(start, how)
    file = tmp_path / "a.py"
    assert await server.check([str(file)]) == []
    file.write_text("good\n bad one\n")
    expected = Diagnostic(path=str(file), line=2, column=2, message="bad:  bad one", source="fake 7")
    assert await server.check([str(file)]) == [expected]
    assert await server.check([str(file)]) == [expected]
    file.write_text("good\n")
    assert await server.check([str(file)]) == []
    file.unlink()
    assert await server.check([str(file)]) == []
    file.write_text("good\n bad one\n")
    assert await server.check([str(file)]) == [expected]


@pytest.mark.parametrize(
    ("how", "said"), [("refuse", "fake refused: not today"), ("die", "fake has ended"), ("garbage", "fake has ended")]
)
async def test_a_server_that_does_not_work_says_so(how: str, said: str, tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    server = fake(start, how)
    for _ in range(2):
        with pytest.raises(ToolError, match=said):
            await server.check([str(file)])


async def test_a_missing_server_says_so(tmp_path: Path, start: Start) -> None:
    with pytest.raises(ToolError, match=r"fake could not be started \(/no/such is missing or cannot be run\)"):
        await start("/no/such").check([str(tmp_path / "a.py")])


async def test_a_silent_server_costs_its_time_limit_and_no_more(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    diagnostics = Diagnostics([fake(start, "silent", seconds=0.5)])
    await diagnostics.before([str(file)])
    assert await diagnostics.after([str(file)]) == Findings(faults=("fake did not answer within 0.5 s",))
    await diagnostics.before([str(file)])
    assert await diagnostics.after([str(file)]) == Findings()


async def test_a_server_that_keeps_failing_is_ended_and_no_longer_asked(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    diagnostics = Diagnostics([fake(start, "silent", seconds=0.2)])
    while diagnostics.covers(str(file)):
        await diagnostics.before([str(file)])
        await diagnostics.after([str(file)])
    assert left_of(f"{servers.__file__} silent") == []


async def test_a_server_that_floods_is_ended(tmp_path: Path, start: Start) -> None:
    server = fake(start, "flood")
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    for _ in range(2):
        with pytest.raises(ToolError, match="fake sent more than 20,000 messages in a row and was stopped"):
            await server.check([str(file)])
    assert left_of(f"{servers.__file__} flood") == []


async def test_nobody_waits_twice_for_a_server_that_is_slow_to_start(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("fine\n")
    gate = tmp_path / "gate"
    server = fake(start, f"gate={gate}", seconds=1)
    diagnostics = Diagnostics([server])
    said = []
    for _ in range(5):
        await diagnostics.before([str(file)])
        said.append(await diagnostics.after([str(file)]))
    assert said == [Findings(faults=("fake did not answer within 1 s",)), *[Findings()] * 4]
    gate.touch()
    await server.started()
    await diagnostics.before([str(file)])
    file.write_text("bad\n")
    problem = Diagnostic(path=str(file), line=1, column=1, message="bad: bad", source="fake 7")
    assert await diagnostics.after([str(file)]) == Findings(problems=(problem,))


async def test_a_server_is_told_its_language_options_and_settings(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    server = fake(
        start, "tell", language="odd", options={"a": 1}, settings={"fake": {"deep": {"x": [1]}}, "other": True}
    )
    (problem,) = await server.check([str(file)])
    assert msgspec.json.decode(problem.message) == {
        "language": "odd",
        "options": {"a": 1},
        "changed": {"settings": {"fake": {"deep": {"x": [1]}}, "other": True}},
        "asked": [{"x": [1]}, None, {"fake": {"deep": {"x": [1]}}, "other": True}],
    }


async def test_a_server_starts_anew_where_it_is_confined_in_another_way(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    states = ["one"]
    wrapped: list[str] = []

    def wrap() -> Wrapping:
        wrapped.append(states[-1])
        return Wrapping(("/usr/bin/env",))

    server = fake(start, "versioned", confinement=ServerConfinement(state=lambda: states[-1], wrap=wrap))
    for state in ("one", "one", "two"):
        states.append(state)
        assert len(await server.check([str(file)])) == 1
    assert wrapped == ["one", "two"]
    assert len(processes(f"{servers.__file__} versioned")) == 1


async def test_a_closed_server_is_gone(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("good\n")
    pid_file = tmp_path / "pid"
    server = start("/bin/sh", "-c", f"echo $$ > {pid_file}; exec {sys.executable} {servers.__file__} versioned")
    await server.check([str(file)])
    await server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
