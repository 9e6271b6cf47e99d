import asyncio
import json
import threading
from pathlib import Path

import pytest

from tests.person import BACKSPACE, CTRL_C, CTRL_D, CTRL_G, CTRL_O, CTRL_S, DOWN, ENTER, ESCAPE, SHIFT_TAB, TAB, UP
from tests.tui.session import FOREVER, SESSION, Pause, Rig, calls, prompt, says, session, text
from tests.tui.terminal import Terminal, terminal
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError, StoreError
from treadle.protocol.events import Interrupt
from treadle.protocol.models import ErrorKind, ModelError, StreamFailure, ToolProtocol
from treadle.protocol.notifications import Phase, TurnEnded
from treadle.protocol.permissions import Mode
from treadle.store.sqlite import Store
from treadle.tui.paint.painter import Painter
from treadle.tui.question.dialog import ONCE_MORE

READY = "? for keys"
ASKED = "ctrl-o"
BLOCKS = "".join(f"------- SEARCH\n{name}\n=======\n{name}!\n+++++++ REPLACE\n" for name in ("first", "second"))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)


def sent(rig: Rig) -> str:
    """What the model was sent last."""
    return encode(rig.provider.requests[-1]).decode()


async def test_a_prompt_is_answered_in_markdown(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("It is **so**:\n\n- one\n- two\n"))) as rig, terminal(rig.live) as (term, _):
        await term.until("─ ask ──", READY)
        term.type(f"how is it?{ENTER}")
        await term.until("› how is it?", "It is so:", " • one", "■ Done · 1 step · 120 tokens · <$0.01")
        assert "how is it?" in sent(rig)


async def test_an_untrusted_folder_is_told_at_the_start_and_on_request(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("rules")
    async with session(tmp_path, trust=session_trust(work)) as rig, terminal(rig.live) as (term, _):
        await term.until("untrusted: not used: AGENTS.md.", "treadle trust", READY)
        (work / "CLAUDE.md").write_text("more")
        term.type(f"/trust{ENTER}")
        await term.until("is not trusted.", "rules", "Changed since the session opened, and not used in it: CLAUDE.md")


async def test_rules_are_listed_and_turned_off(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("Use tabs.")
    trust = session_trust(work, once=True)
    async with session(tmp_path, trust=trust) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/rules{ENTER}")
        await term.until("1  on   AGENTS.md       2 tokens  in every request")
        term.type(f"/rules off 1{ENTER}")
        await term.until("off: AGENTS.md. This applies in")
        term.type(f"/rules{ENTER}")
        await term.until("1  off  AGENTS.md", "about 0 tokens of them")


async def test_a_command_that_runs_beside_the_work_shows_what_came_of_it(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("yes"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/review{ENTER}")
        await term.until("The review runs in the background.", "There is no git repository in")
        term.type(f"are you there?{ENTER}")
        await term.until("yes", "■ Done")


async def test_the_first_prompt_of_the_command_line_is_sent(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("yes"))) as rig, terminal(rig.live, "are you there?") as (term, _):
        await term.until("› are you there?", "yes", "■ Done")


async def confirm(term: Terminal, *keys: str) -> None:
    """Move the choice of a question that is shown or comes, and press Enter as often as it takes."""

    def question() -> list[str]:
        return [line for line in term.shown.splitlines() if line.startswith("▎")]

    await term.until("▎ ❯")
    for key in keys:
        term.type(key)
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    asked = question()
    term.type(ENTER)
    await term.when(lambda: question() != asked, "what comes of Enter")
    if ONCE_MORE in term.shown:  # on a busy machine the question, or a key, and the Enter came too close together
        await asyncio.sleep(1.2)
        term.type(ENTER)


async def test_an_edit_shows_its_diff_and_enter_allows_it(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until("1 - old", "1 + new", "▎ Allow this: Edit x.py?", "❯ Yes", ASKED)
        await confirm(term)
        await term.until("✓ Edit x.py  you allowed it", "■ Done")
        assert "as wanted" in sent(rig)
        assert "Allow this" not in term.shown


async def test_what_is_typed_goes_to_the_draft_and_the_question_waits_for_tab(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"edit it{ENTER}")
        await term.until(ASKED)
        term.type("yyy")
        await term.until("› yyy", "▎ Treadle needs an answer: Edit x.py?   tab to answer")
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        term.type(TAB)
        await term.until(ASKED)
        await confirm(term)
        await term.until("■ Done", "› yyy")


async def test_no_goes_with_words_and_reaches_the_model(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("then not")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until(ASKED)
        await confirm(term, DOWN, DOWN, DOWN)
        await term.until("No. Do this instead:")
        term.type("use tabs")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("⊘ Edit x.py", "you said no: use tabs", "then not")
        assert "rejected this call and said: use tabs" in sent(rig)


async def test_a_comment_goes_with_yes(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until(ASKED)
        await asyncio.sleep(0.7)
        term.type(TAB)
        await term.until("❯ Yes, and tell Treadle:")
        term.type("be quick")
        await confirm(term)
        await term.until("✓ Edit x.py  you allowed it", "■ Done")
        assert "the user said: be quick" in sent(rig)


async def test_pasted_text_answers_no_question(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until(ASKED)
        term.type("\x1b[200~yyy\r\x1b[201~")
        await term.until("› yyy", "tab to answer")
        assert rig.live.status.questions != ()


async def test_what_was_written_for_a_question_that_is_over_goes_to_the_draft(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}"), says(text("ok"))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(ASKED)
        await asyncio.sleep(0.7)
        term.type(TAB)
        await term.until("❯ Yes, and tell Treadle:")
        term.type("half of i")
        await term.until("Treadle: half of i")
        await rig.live.post(Interrupt(), LiveSession.source)
        await term.until("› half of i", "■ Stopped")


async def test_a_command_is_shown_with_its_hidden_characters_escaped(tmp_path: Path) -> None:
    async with session(tmp_path, calls("run", "{}")) as rig, terminal(rig.live, "run it") as (term, _):
        await term.until(ASKED, r"echo hi\u202e; rm \x1b[31m-rf")


async def test_ctrl_o_shows_why_it_is_asked(tmp_path: Path) -> None:
    async with session(tmp_path, calls("run", "{}")) as rig, terminal(rig.live, "run it") as (term, _):
        await term.until(ASKED)
        assert "test-rule" not in term.shown
        term.type(CTRL_O)
        await term.until("rule: test-rule · it changes something", "ctrl-o less")
        term.type(CTRL_O)
        await term.until_gone("test-rule")


async def test_a_followup_question_is_answered_from_its_list(tmp_path: Path) -> None:
    ask = calls("ask_followup_question", '{"question": "Which?", "options": ["red", "blue"]}')
    async with session(tmp_path, ask, says(text("ok"))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("▎ Which?", "❯ red", "  blue", "Something else…")
        await confirm(term, "2")
        await term.until("Which?", "› blue", "■ Done")
        assert '"blue"' in sent(rig)


async def test_shift_tab_goes_to_edits_mode_while_a_question_is_open(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(ASKED)
        term.type(SHIFT_TAB)
        await term.until("─ edits ──")


async def test_escape_interrupts_and_keeps_what_was_said(tmp_path: Path) -> None:
    reply = says(text("Half of it"), Pause(FOREVER))
    async with session(tmp_path, reply) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("Half of it", "Writing")
        term.type(ESCAPE)
        await term.until("■ Stopped", "Half of it", READY)


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
async def test_a_turn_can_be_stopped_before_anything_could_be_painted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    loading = threading.Event()

    def load() -> type[Painter]:
        loading.wait(60)
        return Painter

    monkeypatch.setattr("treadle.tui.terminal_main._load_painter", load)
    async with session(tmp_path, says(Pause(FOREVER))) as rig, terminal(rig.live) as (term, _):
        await term.until("› Describe a task")
        feed = rig.live.follow()
        try:
            term.type("go\r")
            term.type(key)
            async with asyncio.timeout(90):
                while not isinstance(await anext(feed), TurnEnded):
                    pass
        finally:
            loading.set()
        await term.until("■ Stopped", READY)


async def test_ctrl_c_interrupts_a_turn_then_leaves_at_the_second_of_two(tmp_path: Path) -> None:
    async with session(tmp_path, says(Pause(FOREVER))) as rig, terminal(rig.live, "go") as (term, code):
        await term.until("esc to stop")
        term.type(CTRL_C)
        await term.until("■ Stopped", READY)
        term.type(f"abc{CTRL_C}")
        await term.until_gone("› abc")
        term.type(CTRL_C)
        await term.until("ctrl-c again quits")
        term.type(CTRL_C)
        assert await code == 0


async def test_ctrl_d_at_an_empty_line_leaves(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        term.type(CTRL_D)
        assert await code == 0


async def test_messages_wait_are_taken_back_and_held_by_a_stop(tmp_path: Path) -> None:
    replies = (says(Pause(FOREVER)), says(text("second answer")), says(text("third answer")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("esc to stop")
        for message in ("one", "two", "three"):
            term.type(f"{message}{ENTER}")
            await term.until(f"next  {message}")
        term.type(UP)
        await term.until("› three")
        await term.until_gone("next  three")
        term.type(f" and four{ENTER}")
        await term.until("next  three and four", "↑ edit")
        term.type(f"/drop 1{ENTER}")
        await term.until_gone("next  one")
        term.type(ESCAPE)
        await term.until("■ Stopped", "What should Treadle do instead?", "held  two", "held  three and four")
        await asyncio.sleep(0.5)
        assert len(rig.provider.requests) == 1, "a stop starts nothing"
        term.type(ENTER)
        await term.until("› two", "second answer", "held  three and four")
        term.type(BACKSPACE)
        await term.until_gone("held  three and four")
        assert len(rig.provider.requests) == 2


async def test_the_menu_completes_commands_and_their_arguments(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/mo")
        await term.until("❯ /model", "/mode")
        term.type(DOWN)
        await term.until("❯ /mode ")
        term.type(UP)
        await term.until("❯ /model")
        term.type(DOWN)
        await term.until("❯ /mode ")
        term.type(TAB)
        await term.until("› /mode", "❯ plan", "full")
        term.type("ed")
        await term.until("❯ edits")
        term.type(ENTER)
        await term.until("─ edits ──", "› /mode edits")
        await term.until_gone("❯")


async def test_escape_closes_the_menu_and_twice_clears_the_draft_which_undo_brings_back(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/mo")
        await term.until("❯ /mode")
        term.type(ESCAPE)
        await term.until_gone("❯ /mode")
        term.type(ESCAPE)
        await term.until("esc again clears the draft")
        while "› /mo" in term.shown:  # a slow machine may take a press for the first one again
            term.type(ESCAPE)
            await asyncio.sleep(0.2)
        term.type("\x1f")
        await term.until("› /mo")


async def test_a_question_mark_shows_the_keys_until_something_is_typed(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("?")
        await term.until("ctrl-r", "your editor")
        term.type("what?")
        await term.until("› what?")
        assert "your editor" not in term.shown


async def test_ctrl_s_steers_the_running_turn(tmp_path: Path) -> None:
    replies = (calls("edit", "{}"), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(ASKED)
        term.type("mind the tabs")
        await asyncio.sleep(0.1)
        term.type(CTRL_S)
        await term.until("next  mind the tabs", "at the next step", ASKED)
        await confirm(term)
        await term.until("› mind the tabs", "■ Done · 2 steps")


async def test_an_unknown_command_is_explained_and_cleared(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/nope x{ENTER}")
        await term.until("› /nope x", "There is no /nope.", "› Describe a task")
        assert rig.provider.requests == []


async def test_shift_tab_and_the_command_change_the_mode(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(SHIFT_TAB)
        await term.until("─ edits ──", "Mode is now edits: file edits run without asking.")
        term.type(f"/mode full{ENTER}")
        await term.until("─ full ──")


async def test_a_model_that_is_not_known_is_refused_before_the_session_hears_of_it(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/model nobody/nothing{ENTER}")
        await term.until("✗ 'nobody/nothing' is not known.", "Try: Take it.")
        assert rig.live.status.model == "fake/one"
        term.type(f"/model fake/two{ENTER}")
        await term.until("Model: fake/two")
        assert rig.live.status.tool_protocol is ToolProtocol.XML


async def test_enter_leaves_the_list_of_models_open_where_no_name_has_what_is_typed(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/model fto")
        await term.until("❯ fake/two")
        term.type(ENTER)
        await term.until("No name has fto in it. ↑↓ choose", "  fake/two", "› /model fto")
        assert "❯" not in term.shown
        term.type(ENTER)
        await term.until("› /model fto")
        assert rig.live.status.model == "fake/one"
        term.type(DOWN)
        await term.until("❯ fake/two")
        term.type(ENTER)
        await term.until("Model: fake/two")


async def test_words_behind_a_command_that_takes_none_stay_in_the_input_line(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/new fix the bug{ENTER}")
        await term.until("/new takes no text behind it. Nothing was done.", "\n› /new fix the bug\n")
        term.type(f"\x15/plan fix the bug{ENTER}")
        await term.until("─ plan ──", "■ Done")
        assert "fix the bug" in sent(rig)
        assert "/plan" not in sent(rig)


async def test_what_is_unclear_stays_so_when_commands_are_listed_meanwhile(tmp_path: Path) -> None:
    commands = tmp_path / "home" / "commands"
    commands.mkdir(parents=True)
    (commands / "fix.md").write_text("Fix it.")
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/mode pn{ENTER}")
        await term.until("No name has pn in it. ↑↓ choose", "  plan")
        await asyncio.sleep(1)
        assert "No name has pn in it." in term.shown
        term.type(DOWN)
        await term.until("❯ plan")
        term.type(ENTER)
        await term.until("─ plan ──")


async def no_model_of_its_own(mode: Mode, present: str) -> None:
    raise ConfigError("model-key", f"The model of the mode {mode} cannot be called.", why=f"{present} can.")


async def test_words_behind_a_mode_that_is_not_possible_are_not_sent_in_another_one(tmp_path: Path) -> None:
    rigged = session(tmp_path, says(text("ok")), for_mode=no_model_of_its_own)
    async with rigged as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/plan fix the bug{ENTER}")
        await term.until("The model of the mode plan cannot be called.", "\n› fix the bug\n")
        assert rig.provider.requests == []


async def test_a_retry_counts_down_and_escape_stops_it(tmp_path: Path) -> None:
    error = ModelError(kind=ErrorKind.RATE_LIMIT, message="Too much at once.", status=429, retry_after=50.0)
    async with session(tmp_path, [StreamFailure(error=error)]) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("fake takes no more requests for now (429). Retrying in", "esc to stop")
        term.type(ESCAPE)
        await term.until("■ Stopped", READY)


async def test_an_error_of_the_model_says_what_why_and_what_to_do(tmp_path: Path) -> None:
    error = ModelError(kind=ErrorKind.AUTHENTICATION, message="The key is wrong.", status=401, request_id="r-1")
    async with session(tmp_path, [StreamFailure(error=error)]) as rig, terminal(rig.live, "go") as (term, _):
        await term.until(
            "The key is wrong.", "HTTP 401, request r-1", "Try: treadle login fake, or /model for another provider."
        )


async def test_a_resumed_session_shows_its_end_and_asks_what_was_open(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("Answer one")), calls("edit", "{}")) as rig:
        await rig.live.post(prompt("first"), LiveSession.source)
        await rig.live.post(prompt("second"), LiveSession.source)
        async with asyncio.timeout(90):
            while not rig.live.status.questions:
                await asyncio.sleep(0.01)
    async with session(tmp_path, says(text("Answer two")), resume=True) as rig, terminal(rig.live) as (term, _):
        await term.until("› first", "Answer one", "› second", "Allow this: Edit x.py?", ASKED)
        await confirm(term)
        await term.until("Answer two")


async def test_the_last_screens_of_a_long_session_are_printed_and_the_pager_has_more(tmp_path: Path) -> None:
    async with session(tmp_path, *(says(text(f"Answer {number}")) for number in range(150))) as rig:
        for number in range(150):
            await rig.live.post(prompt(f"prompt {number}"), LiveSession.source)
        async with asyncio.timeout(90):
            while rig.live.status.turn_active or rig.live.status.queue:
                await asyncio.sleep(0.01)
    async with session(tmp_path, resume=True) as rig, terminal(rig.live) as (term, _):
        await term.until("› prompt 149", "Answer 149", READY)
        rows = term.shown.split("\n")
        assert "prompt 10\n" not in term.shown
        term.type(CTRL_O)
        await term.until("› prompt 149", "g G ends")
        term.type("g")
        await term.until("› prompt 17\n")
        term.type("q")
        await term.until(READY)
        assert len(rows) <= 200


async def test_a_log_that_cannot_be_written_ends_the_surface_with_the_reason(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        rig.log.broken = True
        term.type(f"hello{ENTER}")
        await term.until("The log cannot be written.", "disk full", "Try: Make room.")
        assert await code == 1
        assert term.shown.count("The log cannot be written.") == 1
        assert "Not possible now" not in term.shown


async def test_the_editor_changes_a_call_which_is_asked_about_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/-rf/-i/")
    replies = (calls("run", '{"command": "rm -rf x", "timeout": 5}'), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "run it") as (term, _):
        await term.until(ASKED, "ctrl-g edit first")
        term.type(CTRL_G)
        await term.until("▎   rm -i x", "❯ Yes, with your change", ASKED)
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        await confirm(term)
        await term.until("you allowed it with your change", "■ Done")
        assert '{\\"command\\":\\"rm -i x\\",\\"timeout\\":5}' in sent(rig)


@pytest.mark.parametrize(
    ("editor", "shown"),
    [
        ("true", "Nothing was changed. The question is still open."),
        ("sed -i d", "Nothing was changed. The question is still open."),
        ("sh -c 'echo changed >$0; exit 1'", "Nothing was changed. The question is still open."),
        ("/nowhere/editor", "Try: Set VISUAL or EDITOR."),
        ("sh -c 'printf \\\\377 >$0'", "Try: Set VISUAL or EDITOR."),
    ],
)
async def test_an_editor_that_leaves_no_other_text_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editor: str, shown: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    call = calls("run", '{"command": "rm -rf x"}')
    async with session(tmp_path, call) as rig, terminal(rig.live, "run it") as (term, _):
        await term.until(ASKED)
        term.type(CTRL_G)
        await term.until(shown, ASKED, "❯ Yes")
        assert "with your change" not in term.shown
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION


async def test_an_edit_is_approved_block_by_block(tmp_path: Path) -> None:
    replies = (calls("edit", json.dumps({"path": "x.py", "diff": BLOCKS})), says(text("ok")))
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until("Choose block by block (2)")
        await confirm(term, DOWN, DOWN, DOWN)
        await term.until("Block 1 of 2", "first", "Leave it out")
        await confirm(term, "n")
        await term.until("Block 2 of 2", "second")
        await confirm(term)
        await term.until("you allowed it with your change", "■ Done")
        amended = sent(rig).partition("with these arguments instead")[2]
        assert "second" in amended
        assert "first" not in amended


async def test_escape_leaves_the_choice_of_blocks_with_nothing_approved(tmp_path: Path) -> None:
    call = calls("edit", json.dumps({"path": "x.py", "diff": BLOCKS}))
    async with session(tmp_path, call) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until("Choose block by block (2)")
        await confirm(term, DOWN, DOWN, DOWN)
        await term.until("Block 1 of 2")
        await confirm(term)
        await term.until("Block 2 of 2")
        term.type(ESCAPE)
        await term.until("Choose block by block (2)")
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION


async def test_a_session_whose_log_fails_refuses_what_is_asked_and_ends_with_the_reason(tmp_path: Path) -> None:
    async def ask_in_vain() -> None:
        async with session(tmp_path) as rig:
            rig.log.broken = True
            await rig.live.post(prompt("hello"), LiveSession.source)

    with pytest.raises(StoreError):
        await ask_in_vain()


async def test_a_session_whose_log_fails_at_the_start_is_given_back_with_the_reason(tmp_path: Path) -> None:
    async def start() -> None:
        async with session(tmp_path, broken=True):
            pass

    with pytest.raises(StoreError):
        await start()
    store = Store(tmp_path / "sessions.db")
    await store.acquire(SESSION)
    store.close()


async def test_an_idle_terminal_draws_nothing(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("yes"))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("■ Done", READY)
        await asyncio.sleep(0.2)
        before = term.writes
        await asyncio.sleep(1.5)
        assert term.writes == before


async def test_a_defect_in_a_key_handler_ends_the_surface_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async with session(tmp_path) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        monkeypatch.setattr("treadle.tui.session.surface.next_mode", broken)
        term.type(SHIFT_TAB)
        with pytest.raises(ExceptionGroup) as caught:
            await code
        assert caught.group_contains(ZeroDivisionError)


async def test_the_bell_rings_for_a_question_of_a_long_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with session(tmp_path, calls("edit", "{}"), says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        monkeypatch.setattr("treadle.tui.session.attention._BELL_AFTER", 3600.0)
        term.type(f"go{ENTER}")
        await term.until(ASKED)
        assert term.bells == 0
        monkeypatch.setattr("treadle.tui.session.attention._BELL_AFTER", 0.0)
        await confirm(term)
        await term.until("■ Done")
        assert term.bells == 1


@pytest.mark.parametrize(("looks", "rings"), [("\x1b[O", 1), ("\x1b[I", 0)])
async def test_whoever_looks_at_the_terminal_is_not_called(tmp_path: Path, looks: str, rings: int) -> None:
    async with session(tmp_path, calls("edit", "{}"), says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(looks)
        await asyncio.sleep(0.1)
        term.type(f"go{ENTER}")
        await term.until(ASKED)
        assert (term.bells, term.notifications) == (rings, ["Treadle needs an answer"] * rings)
        assert term.titles[-1] == "⚠ Treadle: needs an answer"


async def test_earlier_prompts_come_back_in_the_next_session_and_nobody_else_reads_them(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("yes"))) as rig, terminal(rig.live) as (term, code):
        await term.until(READY)
        term.type(f"remember me{ENTER}")
        await term.until("■ Done")
        term.type(CTRL_D)
        assert await code == 0
    assert (tmp_path / "home/history").stat().st_mode & 0o777 == 0o600
    async with session(tmp_path, resume=True) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("\x1b[A")
        await term.when(lambda: term.shown.count("› remember me") == 2, "the prompt in the input line")


async def test_what_is_remembered_is_listed_added_edited_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VISUAL", "sed -i s/English/German/")
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/memory add user Answer in English.{ENTER}")
        await term.until("Remembered:", "tokens in each request")
        term.type(f"/memory edit user{ENTER}")
        await term.until("Saved: about", "from the next session on.")
        term.type(f"/memory{ENTER}")
        await term.until("Answer in German.", "For this project: nothing is remembered")
        term.type(f"/memory forget 1{ENTER}")
        await term.until("Forgotten:")
        term.type(f"/memory forget 1{ENTER}")
        await term.until("There is no entry 1.")
        assert (tmp_path / "home/memory.md").read_bytes() == b""
