"""Language servers: a real one, and one that publishes late, never, or nonsense."""

import os
import shutil
import sys
import sysconfig
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.workspace.diagnostics import servers

from treadle.protocol.errors import ToolError
from treadle.workspace.diagnostics.checks import Diagnostics, Findings
from treadle.workspace.diagnostics.language_server import LanguageServer, ServerCommand
from treadle.workspace.diagnostics.problems import Problem, Severity
from treadle.workspace.variables import child_variables

RUFF = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")

Start = Callable[..., LanguageServer]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    started: list[LanguageServer] = []

    def start(*argv: str, name: str = "fake") -> LanguageServer:
        command = ServerCommand(
            name=name, argv=argv, patterns=("*.py",), root=str(tmp_path), variables=child_variables(os.environ)
        )
        started.append(LanguageServer(command))
        return started[-1]

    yield start
    for server in started:
        await server.close()


def fake(start: Start, how: str) -> LanguageServer:
    return start(sys.executable, servers.__file__, how)


@pytest.mark.skipif(RUFF is None, reason="needs ruff")
async def test_a_real_server_tells_what_an_edit_brought(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a b.py"
    file.write_text("import os\n\n\ndef one() -> str:\n    return os.sep\n")
    diagnostics = Diagnostics([start(str(RUFF), "server", name="ruff")], seconds=60)
    await diagnostics.before([str(file)])
    file.write_text("import os\n\nx = 1\n\n\ndef one() -> str:\n    return os.sep + two\n")
    problem = Problem(
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
    expected = Problem(path=str(file), line=2, column=2, message="bad:  bad one", source="fake 7")
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
    with pytest.raises(ToolError, match=r"fake could not be started \(/no/such: No such file or directory\)"):
        await start("/no/such").check([str(tmp_path / "a.py")])


async def test_a_silent_server_costs_its_time_limit_and_no_more(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("bad\n")
    diagnostics = Diagnostics([fake(start, "silent")], seconds=0.5)
    await diagnostics.before([str(file)])
    assert await diagnostics.after([str(file)]) == Findings(faults=("fake did not answer within 0.5 s",))
    assert await diagnostics.after([str(file)]) == Findings()


async def test_a_closed_server_is_gone(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "a.py"
    file.write_text("good\n")
    pid_file = tmp_path / "pid"
    server = start("/bin/sh", "-c", f"echo $$ > {pid_file}; exec {sys.executable} {servers.__file__} versioned")
    await server.check([str(file)])
    await server.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
