"""What people of other tools type first: it does what they expect, or they read what does it here."""

from functools import partial
from pathlib import Path

import pytest

from tests.person import ENTER, ESCAPE
from tests.tui.session import calls, says, session, text
from tests.tui.terminal import Terminal, terminal
from tests.tui.test_surface import confirm
from treadle.app.errors.exits import Exit

READY = "? for keys"

IN_A_SESSION = (
    ("/?", "Look inside"),
    ("/cost", "This session so far:"),
    ("/status", "waiting for a message"),
    ("/context", "system prompt"),
    ("/permissions", "mode: ask"),
    ("/memory", "memory"),
    ("/mcp", "No MCP servers"),
    ("/config", "Your own file:"),
    ("/theme", "theme = auto"),
    ("/copy", "The last answer: "),
    ("/export out.md", "The session is in"),
    ("/diff", "repository"),
    ("/skills", "skill"),
    ("/hooks", "hook"),
    ("/usage", "fake/one"),
    ("/agents", "explore (reads, Treadle)"),
    ("/review", "eview"),
    ("/update", "treadle update"),
    ("/logout", "treadle logout PROVIDER"),
    ("/models", "/model"),
    ("/sessions", "/resume"),
    ("/settings", "/config"),
    ("/vim", "treadle config set editing vim"),
    ("/keybindings", "[keys]"),
    ("/yolo", "/mode full"),
    ("/commit", "! git commit"),
    ("/history", "/resume"),
    ("/compress", "/compact"),
    ("/run", "! COMMAND"),
    ("/statusline", "status_line"),
)
"""A line, and what is shown after it."""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)


def said(term: Terminal, line: str, shown: str) -> bool:
    """Whether a text is shown below a line that was entered."""
    _, found, after = term.shown.rpartition(f"› {line}\n")
    return bool(found) and shown in " ".join(after.split())


async def test_each_line_does_what_is_expected_or_names_what_does(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("Fine."))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"hello{ENTER}")
        await term.until("■ Done")
        for line, shown in IN_A_SESSION:
            term.type(f"{line}{ENTER}")
            await term.when(partial(said, term, line, shown), f"{line}: {shown}")
        assert len(rig.provider.requests) == 1, "none of them went to the model"


@pytest.mark.parametrize("line", ["exit", "quit", ":q", "/exit", "/quit"])
async def test_leaving_needs_no_slash(tmp_path: Path, line: str) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, ended):
        await term.until(READY)
        term.type(f"{line}{ENTER}")
        await term.when(ended.done, "the end")
        assert ended.result() == Exit.DONE
    assert rig.provider.requests == []


@pytest.mark.parametrize("line", ["/clear", "/new"])
async def test_a_new_session_begins(tmp_path: Path, line: str) -> None:
    opened: list[str] = []
    async with session(tmp_path) as rig, terminal(rig.live, switch=opened.append) as (term, ended):
        await term.until(READY)
        term.type(f"{line}{ENTER}")
        await term.when(ended.done, "the end")
    assert opened == ["new"]


async def test_lists_open_for_the_model_another_session_and_going_back(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("Fine."))) as rig, terminal(rig.live, switch=print) as (term, _):
        await term.until(READY)
        term.type(f"hello{ENTER}")
        await term.until("■ Done")
        for keys, shown in (
            (f"/model{ENTER}", "Model › type to filter"),
            (f"/resume{ENTER}", "Resume › type to filter"),
            (f"/login{ENTER}", "Whose API key?"),
            ("/rewind" + ENTER, "Go back to before"),
        ):
            term.type(keys)
            await term.until(shown)
            term.type(ESCAPE)
            await term.until_gone(shown)
        term.type("?")
        await term.until("these keys")


async def test_undo_takes_nothing_back_where_nothing_was_changed(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}"), says(text("Done so."))) as rig, terminal(rig.live, "go") as one:
        term, _ = one
        await confirm(term)
        await term.until("Done so.", "■ Done")
        term.type(f"/undo{ENTER}")
        await term.until("There is nothing to undo")
