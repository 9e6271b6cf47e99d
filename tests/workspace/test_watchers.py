"""What wakes a session: matching lines of real commands, their end, timers; and what keeps it from waking for ever."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.protocol.errors import ToolError
from treadle.workspace.commands import watchers as module
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.watch_records import read_armed, take_out
from treadle.workspace.commands.watchers import MOST_WOKEN, Watchers, Woken, line_pattern
from treadle.workspace.files.owners import lives
from treadle.workspace.workspace import Workspace, open_workspace


class Place:
    """Watchers and what they said; `arrived` is set with each."""

    def __init__(self, workspace: Workspace, file: Path) -> None:
        self.workspace = workspace
        self.file = file
        self.woken: list[Woken] = []
        self.spent = 0
        self._arrived = asyncio.Event()
        self.watchers = Watchers(self._take, self._spend, file)

    def _take(self, woken: Woken) -> None:
        self.woken.append(woken)
        self._arrived.set()

    def _spend(self) -> None:
        self.spent += 1
        self._arrived.set()

    async def until(self, enough: Callable[[], bool]) -> None:
        """Wait until something is so."""
        while not enough():
            self._arrived.clear()
            async with asyncio.timeout(90):
                await self._arrived.wait()

    def start(self, line: str, wake_on: str) -> CommandProcess:
        """Start a command and watch it."""
        command = self.workspace.launcher.start(line)
        number = self.workspace.commands.add(command)
        self.watchers.monitor(number, command, wake_on)
        return command


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(module, "_BATCH", 0.05)
    workspace = open_workspace(tmp_path, spool=tmp_path / "spool")
    made = Place(workspace, tmp_path / "watchers.json")
    yield made
    await made.watchers.close()
    await workspace.close()


async def test_lines_that_match_wake_together_and_so_does_the_end(place: Place) -> None:
    place.start("echo one; echo ERROR a; echo ERROR b; echo 'no end ERROR c' | tr -d '\\n'; exit 3", "ERROR")
    await place.until(lambda: "has ended" in "".join(one.text for one in place.woken))
    text = "\n".join(one.text for one in place.woken)
    assert [line for line in text.split("\n") if "ERROR" in line and "printed" not in line] == [
        "ERROR a",
        "ERROR b",
        "no end ERROR c",
    ]
    assert text.endswith("Command 1 has ended. Exit status 3.")
    assert {(one.kind, one.id) for one in place.woken} == {("monitor", "1")}
    assert place.watchers.armed() == ()
    assert read_armed(place.file) == ()


async def test_a_line_that_is_the_last_for_now_wakes_too(place: Place) -> None:
    place.start("echo it is ready; sleep 1000", "ready")
    await place.until(lambda: bool(place.woken))
    assert place.woken == [
        Woken(kind="monitor", id="1", text="Command 1 printed lines that match `ready`:\n```\nit is ready\n```")
    ]
    (armed,) = read_armed(place.file)
    assert (armed.id, armed.number, armed.text, lives(armed.owner)) == ("1", 1, "ready", True)


async def test_what_is_printed_stays_in_its_fence(place: Place) -> None:
    place.start("printf '````\\nERROR ````\\033[2J\\n'; sleep 1000", "ERROR|`")
    await place.until(lambda: bool(place.woken))
    assert place.woken[0].text.split("\n")[1:] == ["`````", "````", "ERROR ````", "`````"]


async def test_other_lines_wake_nobody(place: Place) -> None:
    command = place.start("for i in $(seq 500); do echo line $i; done; sleep 1000", "never")
    await command.ended(0.3)
    assert place.woken == []


async def test_very_many_lines_are_bounded_and_counted(place: Place) -> None:
    place.start("yes ERROR | head -n 300000; sleep 1000", "ERROR")
    await place.until(lambda: "came too fast" in "".join(one.text for one in place.woken))
    assert max(len(one.text) for one in place.woken) < 30_000


async def test_what_prints_for_ever_ends_with_a_word_to_the_person(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MINUTE", 0.0)
    place.start("while sleep 0.01; do echo ERROR; done", "ERROR")
    place.watchers.set_timer(1000, "late")
    await place.until(lambda: place.spent > 0)
    assert (len(place.woken), place.spent, place.watchers.armed()) == (MOST_WOKEN, 1, ())


async def test_a_person_s_word_begins_the_count_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MINUTE", 0.0)
    place.start("while sleep 0.01; do echo ERROR; done", "ERROR")
    await place.until(lambda: len(place.woken) == MOST_WOKEN - 2)
    place.watchers.person_spoke()
    await place.until(lambda: len(place.woken) == MOST_WOKEN + 5)
    assert place.spent == 0


async def test_only_some_wake_in_a_minute(place: Place) -> None:
    place.start("while sleep 0.01; do echo ERROR; done", "ERROR")
    await place.until(lambda: len(place.woken) == module._PER_MINUTE)
    await asyncio.sleep(0.3)
    assert len(place.woken) == module._PER_MINUTE


async def test_while_the_last_word_is_unread_nothing_more_is_said(place: Place) -> None:
    place.watchers.hold(held=True)
    command = place.start("echo ERROR 1; echo ERROR 2", "ERROR")
    await command.ended(5)
    await asyncio.sleep(0.2)
    assert place.woken == []
    place.watchers.hold(held=False)
    await place.until(lambda: bool(place.woken))
    assert place.woken[0].text.split("\n")[1:] == [
        "```",
        "ERROR 1",
        "ERROR 2",
        "```",
        "Command 1 has ended. Exit status 0.",
    ]


class HoldingBack:
    """A command that holds back a part of what it printed until it is asked for it."""

    def __init__(self, *held: str) -> None:
        self.listeners: list[Callable[[str], None]] = []
        self._held = list(held)

    def when_gone(self, gone: Callable[[], None]) -> None:
        """It runs on."""

    def flush(self) -> None:
        """Print one more."""
        if self._held:
            self.listeners[0](self._held.pop(0))


async def test_what_is_only_printed_when_it_is_asked_for_waits_too(place: Place) -> None:
    command: Any = HoldingBack("ERROR 1\n", "ERROR 2\n", "ERROR 3\n")
    said: list[str] = []

    def take(woken: Woken) -> None:
        said.append(woken.text)
        watchers.hold(held=True)

    watchers = Watchers(take, lambda: None, place.file)
    watchers.monitor(1, command, "ERROR")
    command.listeners[0]("")
    await asyncio.sleep(0.4)
    assert len(said) == 1
    watchers.hold(held=False)
    await asyncio.sleep(0.4)
    assert len(said) == 2
    await watchers.close()


async def test_a_timer_wakes_once_with_its_note(place: Place) -> None:
    place.watchers.set_timer(0.05, "Look at the build.")
    (armed,) = read_armed(place.file)
    assert (armed.id, armed.text, armed.number) == ("t1", "Look at the build.", 0)
    await place.until(lambda: bool(place.woken))
    text = "The timer that you set 0.05 seconds ago is up. Look at the build."
    assert place.woken == [Woken(kind="timer", id="t1", text=text)]
    assert read_armed(place.file) == ()


async def test_timers_and_watches_can_be_ended_also_from_another_process(place: Place) -> None:
    for seconds in (0.05, 1000, 1000):
        place.watchers.set_timer(seconds, "x")
    assert take_out(place.file, "t1")
    assert not take_out(place.file, "t9")
    place.start("sleep 0.3; echo ERROR; sleep 1000", "ERROR")
    assert take_out(place.file, "1")
    place.watchers.set_timer(0.5, "last")
    assert not take_out(place.file, "1")
    await place.until(lambda: bool(place.woken))
    assert [one.id for one in place.woken] == ["t4"]
    assert place.watchers.cancel_timers() == 2
    assert place.watchers.armed() == ()


async def test_there_is_an_end_to_how_many_there_are(place: Place) -> None:
    for _ in range(module.MOST_ARMED):
        place.watchers.set_timer(1000, "")
    with pytest.raises(ToolError, match="already"):
        place.watchers.set_timer(1000, "")


@pytest.mark.parametrize(
    "expression", ["ERROR|ready", r"\d+ passed, \d+ failed", "^Listening on .*", r"a\+b\*c\(d\)+", "[+*]+x"]
)
def test_an_expression_that_is_quick_is_taken(expression: str) -> None:
    assert line_pattern(expression).pattern == expression


@pytest.mark.parametrize(
    "expression", ["", " ", "(", "(a+)+$", "(a|aa)*b", r"(.)\1", ".*a.*b.*c", "x" * 201, "(?P<a>x)(?P=a)"]
)
def test_an_expression_that_may_take_long_is_refused(expression: str) -> None:
    with pytest.raises(ToolError, match="wake_on cannot be used"):
        line_pattern(expression)
