"""Every way out of the table is refused by each sandbox, and those that can be shown without one work there."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.workspace.sandbox.escape_table import CONTROL, EVERY, FILES, NETWORK, Way, script
from tests.workspace.sandbox.running import Box, bubblewrap, landlock

from treadle.workspace.sandbox import SandboxState

BEYOND_LANDLOCK = {
    "the descriptors of another process",  # their numbers can be listed, not opened
    "mode of a file outside",  # the kernel gives Landlock no say in modes; docs/sandbox.md names it
}


@dataclass(frozen=True)
class Around:
    """A workspace with something of everything, and what lies around it."""

    folder: Path
    variables: dict[str, str]

    @property
    def outside(self) -> dict[str, bytes]:
        """What must not change."""
        work = self.folder / "work"
        kept = [self.folder / "out", work / ".git", work / ".venv", work / "deep", work / "AGENTS.md", work / ".env"]
        files = [path for top in kept for path in (top.rglob("*") if top.is_dir() else [top])]
        return {str(path): path.read_bytes() for path in files if path.is_file()}


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Around]:
    work, out = tmp_path / "work", tmp_path / "out"
    for folder in (out, work / "deep/down", work / ".venv/bin"):
        folder.mkdir(parents=True)
    subprocess.run(("git", "init", "-q", str(work)), check=True)
    for path, text in {
        out / "secret": "SECRET",
        out / "movable": "x",
        out / "removable": "x",
        work / "AGENTS.md": "rules",
        work / "deep/down/.mcp.json": "{}",
        work / ".venv/pyvenv.cfg": "home = /usr/bin",
        work / ".venv/bin/python": "x",
        work / ".env": "PASSWORD=1",
    }.items():
        path.write_text(text)
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        named.bind(str(out / "s.sock"))
        abstract.bind(f"\0treadle-{os.getpid()}")
        for each in (named, abstract):
            stack.enter_context(each)
            each.listen(100)
        victim = subprocess.Popen(("sleep", "600"))
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        variables = {
            "OUT": str(out),
            "SELF": str(os.getpid()),
            "PORT": str(server.getsockname()[1]),
            "SOCK": str(out / "s.sock"),
            "ABSTRACT": f"treadle-{os.getpid()}",
            "VICTIM": str(victim.pid),
        }
        yield Around(tmp_path, variables)
        assert victim.poll() is None


def written(around: Around, ways: tuple[Way, ...]) -> str:
    """Write the script of some ways into the workspace; gives the line that runs it."""
    (around.folder / "work/try.sh").write_text(script(ways))
    settings = " ".join(f"{name}={value}" for name, value in around.variables.items())
    return f"env {settings} bash try.sh"


def got_out(output: str) -> list[str]:
    assert output.endswith("finished\n"), output
    return [line.removeprefix("GOT OUT: ") for line in output.splitlines() if line.startswith("GOT OUT")]


def test_there_are_enough_ways() -> None:
    names = [way.name for way in EVERY]
    assert len(names) == len(set(names))
    assert len(names) >= 90


@pytest.mark.parametrize("way", [way for way in (*FILES, *CONTROL, *NETWORK) if way.plain], ids=lambda way: way.name)
def test_without_a_sandbox_the_way_leads_out(around: Around, way: Way) -> None:
    line = written(around, (way,))
    done = subprocess.run(("bash", "-c", line), cwd=around.folder / "work", capture_output=True, text=True, check=False)
    assert got_out(done.stdout) == [way.name]


@pytest.mark.parametrize("state", [bubblewrap, landlock])
async def test_no_way_leads_out_of_the_sandbox(around: Around, state: Callable[[], SandboxState]) -> None:
    box = Box(around.folder, state())
    before = around.outside
    profile = box.profile(".git", "AGENTS.md", "deep/down/.mcp.json", ".venv", masked=(".env",))
    empty = around.folder / "empty"
    empty.touch(mode=0o400)
    profile = replace(profile, empty=str(empty), hidden=(str(Path.home()), str(around.folder / "out")))
    line = written(around, EVERY)
    status, output = await box.run(line, profile, 100)
    assert status == 0, output
    allowed = BEYOND_LANDLOCK if state is landlock else set()
    assert set(got_out(output)) - allowed == set()
    assert around.outside == before
    for path in ("/etc/treadle-escape", "/usr/bin/treadle-escape", "/treadle-escape", f"{Path.home()}/treadle-escape"):
        assert not os.path.lexists(path)
