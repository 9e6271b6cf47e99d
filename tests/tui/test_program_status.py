"""What the terminal is told of the program's state, and when."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.person import CTRL_D, ENTER, ESCAPE
from tests.tui.session import FOREVER, Pause, calls, says, session, text
from tests.tui.terminal import Terminal, terminal
from tests.tui.test_surface import confirm
from treadle.present.failure_words import is_failure
from treadle.present.view import SessionView
from treadle.protocol.models import ErrorKind, ModelError, StreamEvent, StreamFailure
from treadle.protocol.notifications import TurnStop
from treadle.tui.paint.program_status import program_status

READY = "? for keys"


@pytest.fixture(autouse=True)
def _known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TERM", "xterm-ghostty")
    for name in ("TMUX", "STY", "TERM_PROGRAM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def states(term: Terminal) -> list[str]:
    """Each state that was reported."""
    return [one.removeprefix("state=").removesuffix(":app=treadle") for one in term.reports]


async def test_a_session_reports_what_it_does(tmp_path: Path) -> None:
    failed: list[StreamEvent | Pause] = [StreamFailure(error=ModelError(kind=ErrorKind.AUTHENTICATION, message="no"))]
    replies = (calls("edit", "{}"), says(text("ok")), says(text("half of it"), Pause(FOREVER)), failed)
    async with session(tmp_path, *replies) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        term.type(f"edit it{ENTER}")
        await term.until("Allow this: Edit x.py?")
        await confirm(term)
        await term.until("ok", "■ Done")
        term.type(f"slowly{ENTER}")
        await term.until("half of it")
        term.type(ESCAPE)
        await term.when(lambda: states(term)[-1] == "idle", "the stop")
        term.type(f"again{ENTER}")
        await term.when(lambda: states(term)[-1] == "error", "the error")
        term.type(CTRL_D)
        await code
        edited = ["idle", "working", "blocked:kind=permission", "working", "done"]
        assert states(term) == [*edited, "working", "idle", "working", "error", "clear"]


async def test_a_terminal_that_is_not_known_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live, "go") as (term, code):
        await term.until("■ Done")
        term.type(CTRL_D)
        await code
        assert states(term) == []


@pytest.mark.parametrize("stop", TurnStop)
def test_every_end_of_a_turn_is_reported(stop: TurnStop) -> None:
    view = SessionView(stop=stop)
    expected = "done" if stop is TurnStop.END_TURN else "error" if is_failure(stop) else "idle"
    assert f"state={expected}:" in program_status(view, 1)
    assert "state=working:" in program_status(replace(view, active=True), 1)
    assert "state=idle:" in program_status(view, 0)
