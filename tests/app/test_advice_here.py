"""What a command of a session advises can be done in that session."""

import re
from pathlib import Path

import pytest

from tests.tui.session import FOREVER, Pause, prompt, says, session
from treadle.app.slash import do_command
from treadle.protocol.errors import TreadleError
from treadle.protocol.events import CompactNow

_OF_THE_COMMAND_LINE = re.compile(r"(?<!\S)`?--?[a-z]")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    "line",
    [
        "add-dir /nosuch",
        "memory add",
        "memory forget 7",
        "copies show x",
        "copies apply x",
        "copies discard x",
        "pin off",
        "pin off 7",
        "mode nosuch",
        "effort nosuch",
    ],
)
async def test_the_way_on_is_one_of_this_place(tmp_path: Path, line: str) -> None:
    name, _, argument = line.partition(" ")
    async with session(tmp_path) as rig:
        try:
            answer = do_command(name, argument, rig.live)
        except TreadleError as error:
            said = error.fix
        else:
            assert (answer.warning, answer.ops) == (True, ()), answer
            said = answer.text
    assert said
    assert not _OF_THE_COMMAND_LINE.search(said), said
    for command in re.findall(r"`treadle ([a-z]+)", said):
        assert f"/{command}" in said


async def test_what_waits_for_the_end_of_the_turn_says_so(tmp_path: Path) -> None:
    async with session(tmp_path, says(Pause(FOREVER))) as rig:
        idle = do_command("compact", "", rig.live)
        await rig.live.post(prompt("work"), rig.live.source)
        working = do_command("compact", "names", rig.live)
    assert (idle.text, idle.ops) == ("", (CompactNow(focus=""),))
    assert working.text == "Room is made in the context when the turn has ended."
    assert working.ops == (CompactNow(focus="names"),)
