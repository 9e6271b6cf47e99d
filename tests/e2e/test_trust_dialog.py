"""A person at a real terminal is asked about a folder before the session opens, and what they say counts."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import ROWS, Terminal, on_terminal
from tests.e2e.running import model
from tests.person import CTRL_C, ENTER
from treadle.app.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.server import ScriptedServer

RULES = "Speak in rhymes."
ASKED = "Trust it?"
READY = "? for keys"


@dataclass(frozen=True)
class Place:
    """A folder to work in, the program, and the model that it speaks to."""

    folder: Path
    program: Program
    server: ScriptedServer

    @asynccontextmanager
    async def start(self, *words: str, rows: int = ROWS) -> AsyncIterator[Terminal]:
        where = () if "--resume" in words else ("--directory", str(self.folder))
        async with on_terminal(self.program, *model(self.server), *where, *words, rows=rows) as terminal:
            yield terminal

    async def sent_rules(self, terminal: Terminal, answer: str = "First.") -> bool:
        """Say hello and leave; tells whether the model read the rules before it answered."""
        terminal.type(f"hello{ENTER}")
        await terminal.until_shown(answer)
        terminal.type(f"/quit{ENTER}")
        assert await terminal.ended() == Exit.DONE
        return RULES in json.dumps(self.server.requests[-1].body)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text(RULES)
    turns = tuple(Turn(items=(SayText(text=text),)) for text in ("First.", "Second."))
    async with ScriptedServer(Script(turns=turns)) as server:
        yield Place(folder, Program(tmp_path / "home"), server)


@pytest.mark.parametrize("keys", [ENTER, f"yea{ENTER}", f"n{ENTER}"])
async def test_without_a_yes_the_session_opens_untrusted_and_says_so(place: Place, keys: str) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(
            f"{place.folder} has files that can run or configure", "rules", "AGENTS.md", ASKED, "[y/N]"
        )
        terminal.type(keys)
        await terminal.until_shown("untrusted: not used: AGENTS.md.", "treadle trust", READY)
        assert not await place.sent_rules(terminal)
    async with place.start() as again:
        await again.until(lambda shown: ASKED in shown or READY in shown, "a question or the session")
        assert (ASKED in again.shown) is (keys != f"n{ENTER}"), "only a no is remembered"


async def test_a_yes_is_remembered_until_something_changes(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.type(f"y{ENTER}")
        await terminal.until_shown(READY)
        assert await place.sent_rules(terminal)
    async with place.start() as again:
        await again.until_shown(READY)
        assert (ASKED in again.shown, "untrusted" in again.shown) == (False, False)
    (place.folder / "AGENTS.md").write_text(f"{RULES} Obey.")
    (place.folder / "CLAUDE.md").write_text("more")
    async with place.start() as third:
        await third.until_shown("changed since you trusted it:", "AGENTS.md  (changed)", "CLAUDE.md  (new)", ASKED)
        (place.folder / "CLAUDE.md").unlink()
        third.type(f"y{ENTER}")
        await third.until(
            lambda shown: ASKED in shown.partition("It changed before you answered.")[2], "the question anew"
        )
        assert "gone                     CLAUDE.md" in third.shown
        third.type(f"y{ENTER}")
        await third.until_shown(READY)


async def test_what_the_folder_would_let_run_unasked_is_listed_and_many_files_do_not_hide_it(place: Place) -> None:
    (place.folder / ".treadle" / "skills").mkdir(parents=True)
    for number in range(60):
        (place.folder / ".treadle" / "skills" / f"{number}.md").write_text("")
    (place.folder / ".treadle" / "policy.toml").write_text(
        'version = 1\n[[rule]]\nid = "x"\nverdict = "allow"\nargv = ["npm", "run", "evil"]\nmatch = ["npm run evil"]\n'
    )
    async with place.start(rows=24) as terminal:
        await terminal.until_shown("allow  command npm run evil …", "more of settings", "v: list all", ASKED)


async def test_keys_from_before_the_question_answer_nothing(place: Place) -> None:
    async with place.start() as terminal:
        terminal.type(f"y{ENTER}y{ENTER}")
        await terminal.until_shown(ASKED)
        terminal.type(ENTER)
        await terminal.until_shown("untrusted: not used:", READY)


async def test_ctrl_c_at_the_question_leaves(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.type(CTRL_C)
        assert await terminal.ended() == Exit.INTERRUPTED


async def test_a_resumed_session_asks_about_what_changed(place: Place) -> None:
    async with place.start("--trust") as terminal:
        await terminal.until_shown(READY)
        assert await place.sent_rules(terminal)
    listed = await place.program.run("sessions", "--json", "--all")
    session = json.loads(listed.out)["id"]
    async with place.start("--resume", session) as again:
        await again.until_shown(ASKED)
        again.type(ENTER)
        await again.until_shown("untrusted: not used: AGENTS.md.", READY)
        assert not await place.sent_rules(again, "Second.")


async def test_nothing_is_asked_where_there_is_no_session_to_continue(place: Place) -> None:
    async with place.start("--continue") as terminal:
        await terminal.until_shown("There is no session to continue.")
        assert (await terminal.ended(), ASKED in terminal.shown) == (Exit.FAILED, False)


async def test_names_that_would_steer_the_terminal_are_shown_as_they_are_spelled(place: Place) -> None:
    (place.folder / ".treadle").mkdir()
    (place.folder / ".treadle" / "a\x1b[2J\nTrusted.\u202e").write_text("")
    for number in range(300):
        (place.folder / ".treadle" / f"{number:03}").write_text("")
    async with place.start() as terminal:
        await terminal.until_shown("… and ", " more of settings", "v: list all")
        assert "AGENTS.md" in terminal.shown, "what is rare is not pushed out of sight"
        terminal.type(f"v{ENTER}")
        await terminal.until_shown(".treadle/299", "a\\x1b[2J\\nTrusted.\\u202e")


async def test_a_folder_in_which_nothing_would_act_is_opened_without_a_question(place: Place) -> None:
    (place.folder / "AGENTS.md").unlink()
    async with place.start() as terminal:
        await terminal.until_shown(READY)
        assert (ASKED in terminal.shown, "untrusted" in terminal.shown) == (False, False)


async def test_a_repository_is_asked_about_once_and_a_mode_of_the_settings_waits_for_the_answer(place: Place) -> None:
    (place.folder / "AGENTS.md").unlink()
    subprocess.run(["git", "init", "-q", str(place.folder)], check=True)
    place.program.home.mkdir()
    (place.program.home / "config.toml").write_text('mode = "edits"\n')
    async with place.start() as terminal:
        await terminal.until_shown("is in a git repository", "It has no rules, settings, servers or hooks.", ASKED)
        terminal.type(f"n{ENTER}")
        await terminal.until_shown("untrusted: not used: mode edits of the settings.", "? for keys")
    async with place.start("--mode", "edits") as said:
        await said.until_shown("edits mode")
        assert ASKED not in said.shown
    assert (await place.program.run("trust", str(place.folder), "--yes")).code == 0
    async with place.start() as again:
        await again.until_shown("edits mode")
