"""/theme: what is drawn has the other colours at once, and they are the person's setting from then on."""

from pathlib import Path

import pytest

from tests.person import ENTER
from tests.tui.session import session
from tests.tui.terminal import terminal
from treadle.tui.paint.theme import ROLES, Palette

READY = "? for keys"
DARK, LIGHT = (ROLES["dim"][palette].fg.removeprefix("#") for palette in (Palette.DARK, Palette.LIGHT))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("COLORFGBG", "15;0")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def test_the_colours_change_at_once_and_are_saved(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        assert term.colour_of(READY) == DARK
        term.type(f"/theme light{ENTER}")
        await term.when(lambda: term.colour_of(READY) == LIGHT, "the light colours")
        await term.until("theme = light. Saved in")
        assert 'theme = "light"' in (tmp_path / "config.toml").read_text()
        term.type(f"/theme{ENTER}")
        await term.until("theme = light. /theme NAME chooses another one: auto, dark, light, ansi.")
        term.type(f"/theme dark{ENTER}")
        await term.when(lambda: term.colour_of(READY) == DARK, "the dark colours")
        term.type(f"/theme pink{ENTER}")
        await term.until("/theme needs one of auto, dark, light, ansi.")
        assert 'theme = "dark"' in (tmp_path / "config.toml").read_text()


async def test_auto_asks_the_terminal_and_its_answer_is_no_key(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/theme auto{ENTER}")
        await term.when(lambda: "?" in term.notifications, "the question for the background")
        term.type("\x1b]11;rgb:fdfd/f6f6/e3e3\x07")
        await term.when(lambda: term.colour_of(READY) == LIGHT, "the light colours")
        assert "rgb:" not in term.shown


async def test_what_cannot_be_seen_here_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/theme light{ENTER}")
        await term.until("theme = light. Saved in", "It shows in other terminals: NO_COLOR is set here.")
