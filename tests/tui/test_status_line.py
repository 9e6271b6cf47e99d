"""The person's own status line: what its command is told, when it runs, and what of its output can be shown."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.formatted_text import ANSI, to_formatted_text

from tests.person import ENTER
from tests.tui.session import SESSION, Rig, says, session, text
from tests.tui.terminal import Terminal, terminal
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.tui.paint.lines import cells
from treadle.tui.session import status_line
from treadle.tui.session.status_line import harmless_line

READY = "? for keys"
RED = "\x1b[31m"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)


@asynccontextmanager
async def shown_by(command: str, folder: Path, *replies: Any, **how: Any) -> AsyncIterator[tuple[Terminal, Rig]]:
    """A session whose status line is that of a command."""
    settings = Settings(status_line=command)
    async with session(folder, *replies, **how) as rig, terminal(rig.live, settings=settings) as (term, _):
        yield term, rig


def told(file: Path) -> list[dict[str, Any]]:
    """What the command was told, run by run."""
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_the_command_is_told_of_the_session_and_its_first_line_is_below_the_status(tmp_path: Path) -> None:
    file = tmp_path / "told"
    command = f"(cat; echo) >> {file}; printf '\\n one \\033[31mred\\033[0m\\nsecond'"
    async with shown_by(command, tmp_path, says(text("yes"))) as (term, _):
        await term.until(READY, "  one red")
        assert "second" not in term.shown
        (first,) = told(file)
        assert first["cost"].pop("total_duration_ms") >= 0
        assert first == {
            "hook_event_name": "Status",
            "session_id": SESSION,
            "session_name": None,
            "cwd": str(tmp_path),
            "model": {"id": "fake/one", "display_name": "one"},
            "workspace": {"current_dir": str(tmp_path), "project_dir": str(tmp_path), "added_dirs": []},
            "version": first["version"],
            "permission_mode": "ask",
            "cost": {"total_cost_usd": 0.0, "total_lines_added": 0, "total_lines_removed": 0},
            "context_window": {
                "total_input_tokens": 0,
                "context_window_size": 10_000,
                "used_percentage": 0,
                "remaining_percentage": 100,
            },
            "exceeds_200k_tokens": False,
        }
        term.type(f"go{ENTER}")
        await term.until("■ Done")
        await term.when(lambda: told(file)[-1]["cost"]["total_cost_usd"] > 0, "the cost")
        assert told(file)[-1]["context_window"]["used_percentage"] == 1


async def test_it_does_not_run_again_while_no_fact_changes(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    async with shown_by(f"echo run >> {file}; wc -l < {file}", tmp_path) as (term, _):
        await term.until(READY)
        await term.when(file.exists, "a run")
        term.type("typing changes nothing")
        await term.until("typing changes nothing")
        await asyncio.sleep(1)
        assert file.read_text() == "run\n"
        term.type("\x1b[Z")
        await term.until("Mode is now edits")
        await term.when(lambda: file.read_text() == "run\nrun\n", "a second run")


async def test_a_command_that_fails_is_said_once_and_shows_nothing(tmp_path: Path) -> None:
    async with shown_by("echo shown; echo why >&2; exit 3", tmp_path) as (term, _):
        await term.until("The command of your status line: Exit status 3. why")
        term.type("\x1b[Z")
        await term.until("Mode is now edits")
        await asyncio.sleep(1)
        assert term.shown.count("The command of your status line") == 1
        assert "shown" not in term.shown.splitlines()[-1]


async def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_line, "_SECONDS", 0.5)
    command = f"(setsid sleep 1000 & echo $! > {tmp_path}/pid); sleep 1000"
    async with shown_by(command, tmp_path) as (term, _):
        await term.until("it ran longer than 0.5 s", READY)
        term.type("still here")
        await term.until("› still here")
        pid = int((tmp_path / "pid").read_text())
        await term.when(lambda: not _runs(pid), "the end of what it started")


async def test_leaving_ends_it(tmp_path: Path) -> None:
    async with shown_by(f"echo $$ > {tmp_path}/pid; exec sleep 1000", tmp_path) as (term, _):
        await term.until(READY)
        await term.when(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()), "a run")
    assert not _runs(int((tmp_path / "pid").read_text()))


async def test_it_does_not_run_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".treadle").mkdir(parents=True)
    (work / ".treadle" / "config.toml").write_text('model = "a/b"\n')
    async with shown_by(f"touch {tmp_path}/ran", tmp_path, trust=session_trust(work)) as (term, _):
        await term.until("it does not run in a folder that you do not trust")
    assert not (tmp_path / "ran").exists()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(
            [
                RED,
                "\x1b[0m",
                "\x1b]8;;http://x\x07",
                "\x1b]52;c;YQ==\x1b\\",
                "\x1b[2J",
                "\x1b[?1049h",
                "\x1bPq",
                "\x01",
                "\x02",
            ]
        ),
        st.sampled_from(["\x9b31m", "\x1b", "\u202e", "日本", "\r", "\n", "\t", "\x1b[", "\x1b]0;t"]),
    ),
    max_size=12,
)


@given(PIECES, st.integers(5, 60), st.booleans())
def test_no_output_steers_the_terminal_or_is_wider_than_its_row(pieces: list[str], width: int, colours: bool) -> None:
    shown = harmless_line("".join(pieces), width, colours=colours)
    fragments = to_formatted_text(ANSI(shown))
    assert all("[ZeroWidthEscape]" not in one[0] for one in fragments)
    seen = "".join(one[1] for one in fragments)
    assert seen.isprintable() or not {"\x1b", "\x9b", "\n", "\r", "\x01"} & set(seen)
    assert cells((("", seen),)) <= width
    assert colours or "\x1b" not in shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\n\n  two\nthree", "  two"),
        (f"{RED}red\x1b[0m plain", f"{RED}red\x1b[0m plain\x1b[0m"),
        ("\x1b]8;;https://x\x07link\x1b]8;;\x07", "link"),
        ("a\x1b[2Kb\x1b[3;4Hc", "abc"),
        ("", ""),
        ("\x1b[31m \x1b[0m", ""),
        ("0123456789", "01234567"),
        ("日本語日本語", "日本語日"),
    ],
)
def test_the_first_line_is_shown_with_its_colours(printed: str, shown: str) -> None:
    found = harmless_line(printed, 8 if "0123" in printed or "日" in printed else 40, colours=True)
    assert found.removesuffix("\x1b[0m") == shown.removesuffix("\x1b[0m")
