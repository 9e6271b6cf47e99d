"""An editor in a terminal: a pane of tmux that keys are sent to, and whose screen is read."""

import asyncio
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE


class Pane:
    """One editor on a server of its own; `home` is Treadle's."""

    def __init__(self, place: Path, folder: Path) -> None:
        self.home = place / "home"
        self.folder = folder
        self._socket = str(place / "tmux")
        extra = {"LC_ALL": "C.UTF-8", "HOME": str(place), "TERM": "xterm-256color"}
        kept = Program(self.home, extra).environment
        self._environment = {name: value for name, value in kept.items() if name not in ("NO_COLOR", "TMUX")}

    def _run(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, *words]
        return subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True).stdout

    def start(self, command: Sequence[str]) -> None:
        """Start the editor, in its folder."""
        size = ("-x", "140", "-y", "45")
        self._run("new-session", "-d", "-c", str(self.folder), *size, "-s", "t", shlex.join(command))

    def end(self) -> None:
        """End the editor, and what it started."""
        with suppress(subprocess.CalledProcessError):
            self._run("kill-server")

    def keys(self, *names: str) -> None:
        """Press keys, by their names."""
        self._run("send-keys", "-t", "t", *names)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._run("send-keys", "-t", "t", "-l", text)

    @property
    def shown(self) -> str:
        """What is on the screen."""
        return self._run("capture-pane", "-p", "-t", "t")

    async def until(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not all(text in self.shown for text in texts):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{texts} is not all shown:\n{self.shown}") from None

    async def holds(self, path: Path, text: str) -> None:
        """Wait until a file has a text."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not path.exists() or path.read_text() != text:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            found = path.read_text() if path.exists() else "not there"
            raise AssertionError(f"{path} is {found!r}:\n{self.shown}") from None

    def agents(self) -> list[int]:
        """The processes of `treadle acp` that this editor started."""
        return agents_of(self.home)

    def kill_agent(self) -> None:
        """End the agent in the middle of what it does."""
        for agent in self.agents():
            os.kill(agent, signal.SIGKILL)


def agents_of(home: Path) -> list[int]:
    """The processes of `treadle acp` with this home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            mine = f"TREADLE_HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0")
            if b"acp" in words and mine:
                found.append(int(process.name))
    return found
