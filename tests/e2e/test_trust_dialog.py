"""A person at a real terminal is asked about a folder before the session opens, and what they say counts."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import ROWS, Terminal, on_terminal
from tests.e2e.running import model
from tests.person import CTRL_C, CTRL_D, CTRL_O, DOWN, ENTER, ESCAPE, TAB
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

RULES = "Speak in rhymes."
ASKED = "trust this folder?"
CHOSEN = "❯ Not now"
READY = "? for keys"
YES, NEVER = (DOWN,), (DOWN, DOWN)


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


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((), id="enter", marks=pytest.mark.soak),
        pytest.param(NEVER, id="never"),
        pytest.param((ESCAPE,), id="escape", marks=pytest.mark.soak),
        pytest.param(("y", "e", "s"), id="letters"),
    ],
)
async def test_without_a_yes_the_session_opens_untrusted_and_says_so(place: Place, answer: tuple[str, ...]) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(
            f"Do you trust this folder?  {place.folder}",
            "It has rules for the model (AGENTS.md).",
            "If you trust it, its rules are sent to the model. A change asks again.",
            CHOSEN,
        )
        await terminal.confirm(*answer)
        await terminal.until_shown("untrusted: not used: AGENTS.md.", "treadle trust", READY)
        said = "Not trusted: " if answer == NEVER else "Not trusted yet: "
        assert f"⊘ {said}{place.folder}" in terminal.shown
        assert ASKED not in terminal.shown, "one line is left of the question"
        assert not await place.sent_rules(terminal)
    async with place.start() as again:
        await again.until(lambda shown: ASKED in shown or READY in shown, "a question or the session")
        assert (ASKED in again.shown) is (answer != NEVER), "only never is remembered"


async def test_a_yes_is_remembered_until_something_changes(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        await terminal.confirm(*YES)
        await terminal.until_shown(f"✓ Trusted: {place.folder}", READY)
        assert await place.sent_rules(terminal)
    async with place.start() as again:
        await again.until_shown(READY)
        assert (ASKED in again.shown, "untrusted" in again.shown) == (False, False)
    (place.folder / "AGENTS.md").write_text(f"{RULES} Obey.")
    (place.folder / "CLAUDE.md").write_text("more")
    async with place.start() as third:
        await third.until_shown(
            "Do you still trust this folder?",
            "Changed since you trusted it: AGENTS.md (changed) and CLAUDE.md (new).",
            CHOSEN,
        )
        (place.folder / "CLAUDE.md").unlink()
        await third.confirm(*YES)
        await third.until_shown("It changed before you answered.", "CLAUDE.md (gone)", CHOSEN)
        await third.confirm(*YES)
        await third.until_shown("✓ Trusted: ", READY)
        assert third.shown.count("rusted: ") == 1


async def test_what_the_folder_would_let_run_unasked_is_listed_and_many_files_do_not_hide_it(place: Place) -> None:
    (place.folder / ".treadle" / "skills").mkdir(parents=True)
    for number in range(60):
        (place.folder / ".treadle" / "skills" / f"{number}.md").write_text("")
    (place.folder / ".treadle" / "policy.toml").write_text(
        'version = 1\n[[rule]]\nid = "x"\nverdict = "allow"\nargv = ["npm", "run", "evil"]\nmatch = ["npm run evil"]\n'
    )
    async with place.start(rows=24) as terminal:
        await terminal.until_shown(
            "settings (61 files)", "Its rules let this run without asking: command npm run evil …", CHOSEN
        )


@pytest.mark.parametrize(
    "keys",
    [
        ENTER,
        f"{DOWN}{ENTER}",
        *(pytest.param(keys, marks=pytest.mark.soak) for keys in (f"y{ENTER}y{ENTER}", f"2{ENTER}")),
        f"\x1b[200~2{ENTER}\x1b[201~",
    ],
)
async def test_keys_from_before_the_question_and_in_one_piece_answer_nothing(place: Place, keys: str) -> None:
    for _ in range(3):  # on a busy machine the question may have stood long before it is seen, and takes an answer
        async with place.start() as terminal:
            terminal.type(keys)
            await terminal.until_shown(ASKED)
            terminal.type(keys)
            await asyncio.sleep(1.5)
            if ASKED in terminal.shown:
                terminal.type(ESCAPE)
                await terminal.until_shown("untrusted: not used:", READY)
                return
    pytest.fail("the keys answered the question each time")


async def test_enter_in_the_first_moment_confirms_nothing(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.type(DOWN)
        await terminal.until_shown("❯ Yes, trust it")
        terminal.type(ENTER)
        await terminal.until_shown("enter again to confirm")
        await terminal.confirm()
        await terminal.until_shown("✓ Trusted: ", READY)


async def test_what_is_typed_after_the_answer_is_in_the_draft(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(CHOSEN)
        await terminal.confirm()
        await terminal.until_shown("Not trusted yet")
        terminal.type("hello")
        await terminal.until_shown("› hello", READY)


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, Exit.INTERRUPTED), (CTRL_D, Exit.DONE)])
async def test_whoever_quits_at_the_question_gets_the_terminal_back(place: Place, key: str, code: int) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.type(key)
        assert await terminal.ended() == code
        assert terminal.restored()
        assert ASKED not in terminal.shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, Exit.TERMINATED), (signal.SIGHUP, Exit.HANGUP)])
async def test_a_signal_at_the_question_ends_in_order(place: Place, number: int, code: int) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.process.send_signal(number)
        assert await terminal.ended() == code
        assert terminal.restored()


async def test_a_terminal_that_is_gone_at_the_question_ends_the_program(place: Place) -> None:
    async with place.start() as terminal:
        await terminal.until_shown(ASKED)
        terminal.close()
        assert await terminal.ended() == Exit.HANGUP


@pytest.mark.parametrize("look", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=str)
async def test_the_question_works_on_every_terminal_and_in_forty_columns(place: Place, look: dict[str, str]) -> None:
    program = Program(place.program.home, look)
    folder = ("--directory", str(place.folder))
    async with on_terminal(program, *model(place.server), *folder, rows=24, columns=40) as terminal:
        await terminal.until_shown("Do you trust this folder?", "Not now", "Yes, trust it", "Never for this folder")
        await terminal.confirm(TAB, *YES)
        await terminal.until_shown(" Trusted:", "Describe a task")


async def test_a_resumed_session_asks_about_what_changed(place: Place) -> None:
    async with place.start("--trust") as terminal:
        await terminal.until_shown(READY)
        assert await place.sent_rules(terminal)
    listed = await place.program.run("sessions", "--json", "--all")
    session = json.loads(listed.out)["id"]
    async with place.start("--resume", session) as again:
        await again.until_shown(ASKED)
        await again.confirm()
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
        await terminal.until_shown("rules for the model (AGENTS.md) and settings (301 files)", "ctrl-o details", CHOSEN)
        terminal.type(CTRL_O)
        await terminal.until_shown("AGENTS.md", "q back")
        terminal.type("G")
        await terminal.until_shown(".treadle/299", "a\\x1b[2J\\nTrusted.\\u202e")
        terminal.type("q")
        await terminal.until_shown(CHOSEN)
        assert ".treadle/299" not in terminal.shown


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
        await terminal.until_shown("Nothing in it runs automatically today.", "may read its git state", CHOSEN)
        await terminal.confirm(*NEVER)
        await terminal.until_shown("untrusted: not used: mode edits of the settings.", "? for keys")
    async with place.start("--mode", "edits") as said:
        await said.until_shown("edits mode")
        assert ASKED not in said.shown
    assert (await place.program.run("trust", str(place.folder), "--yes")).code == 0
    async with place.start() as again:
        await again.until_shown("edits mode")


async def test_the_command_asks_in_the_same_list_and_esc_changes_nothing(place: Place) -> None:
    for keys, said, state in (((ESCAPE,), None, "untrusted"), ((DOWN,), "Trusted.", "trusted")):
        async with on_terminal(place.program, "trust", str(place.folder)) as terminal:
            await terminal.until_shown(f"{place.folder}: untrusted", "  rules  ", "AGENTS.md", CHOSEN)
            if keys == (ESCAPE,):
                terminal.type(ESCAPE)
            else:
                await terminal.confirm(*keys)
            assert await terminal.ended() == Exit.DONE
            assert terminal.restored()
            assert (said or "untrusted") in terminal.shown
        listed = await place.program.run("trust", str(place.folder), "--json")
        assert json.loads(listed.out)["state"] == state
