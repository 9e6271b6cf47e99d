"""Menus and lists in a running session: files, arguments, models, and another session."""

import asyncio
from pathlib import Path

import pytest

from tests.person import ALT_P, DOWN, ENTER, ESCAPE, TAB
from tests.tui.session import Rig, calls, prompt, says, session, text
from tests.tui.terminal import terminal
from treadle.app.config.places import config_file, database
from treadle.app.session.live import LiveSession
from treadle.protocol.codec import encode
from treadle.protocol.notifications import Phase
from treadle.store.sqlite import SessionRow, Store

READY = "? for keys"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(home))
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in ("shop/cart.py", "tests/test_cart.py", "my docs/a b.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()


def sent(rig: Rig) -> str:
    return encode(rig.provider.requests[-1]).decode()


async def test_a_file_is_named_with_its_lines_and_the_text_goes_as_it_is(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("fine"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("look at @cart")
        await term.until("❯ shop/cart.py", "  tests/test_cart.py")
        term.type(f"{DOWN}{TAB}")
        await term.until("› look at @tests/test_cart.py")
        term.type("and @ca:10-40")
        await term.until("❯ shop/cart.py")
        term.type(ENTER)
        await term.until("@shop/cart.py:10-40")
        term.type(ENTER)
        await term.until("■ Done")
        assert "look at @tests/test_cart.py and @shop/cart.py:10-40" in sent(rig)


async def test_enter_sends_where_no_file_fits_or_the_menu_was_closed(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("one")), says(text("two"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"ask @nobody-xyz{ENTER}")
        await term.until("› ask @nobody-xyz", "■ Done")
        term.type("@cart")
        await term.until("❯ shop/cart.py")
        term.type(ESCAPE)
        await term.until_gone("❯ shop/cart.py")
        term.type("x")
        await term.until("› @cartx")
        term.type(ENTER)
        await term.until("two")
        assert "@cartx" in sent(rig)


async def test_a_folder_opens_in_the_menu_and_blanks_are_quoted(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("fine"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("@my")
        await term.until("❯ my docs/")
        term.type(TAB)
        await term.until('› @"my docs/"', "❯ my docs/a b.md")
        term.type(ENTER)
        await term.until('› @"my docs/a b.md"')
        term.type(ENTER)
        await term.until("■ Done")
        assert '@\\"my docs/a b.md\\"' in sent(rig)


async def test_what_was_named_in_a_message_is_offered_first(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("fine"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"see @tests/test_cart.py please{ENTER}")
        await term.until("■ Done")
        term.type("@")
        await term.until("❯ tests/test_cart.py")


async def test_a_message_that_is_recalled_opens_no_menu(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("fine"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"first{ENTER}")
        await term.until("■ Done")
        term.type("see @cart")
        await term.until("❯ shop/cart.py")
        term.type(ESCAPE)
        await term.until_gone("❯ shop/cart.py")
        term.type("\x1b[A")
        await term.until("› first")
        term.type("\x1b[B")
        await term.until("› see @cart")
        assert "❯ shop/cart.py" not in term.shown


async def test_arguments_are_offered_and_enter_takes_the_chosen_one(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/mode ")
        await term.until("❯ plan", "edits")
        term.type("ed")
        await term.until("❯ edits")
        term.type(ENTER)
        await term.until("─ edits ──")
        term.type("/drop ")
        await term.until("› /drop")
        term.type(ENTER)
        await term.until("/drop needs the number")


async def test_a_model_is_chosen_from_the_list_and_the_draft_stays(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("half a thought")
        await term.until("› half a thought")
        term.type(ALT_P)
        await term.until("Model ›", "❯ one ", "in use", "ctrl-a all ")
        assert "claude-sonnet-4-5" not in term.shown
        term.type("\x01")
        await term.until("claude-sonnet-4-5", "no key", "ctrl-a fewer")
        term.type("\x01")
        await term.until_gone("claude-sonnet-4-5")
        term.type("no such thing")
        await term.until("Nothing fits. Ctrl-A shows 1 more model of providers without a key.")
        term.type("\x15two")
        await term.until("Model › two", "❯ two ")
        assert "› half a thought" in term.shown
        term.type(ENTER)
        await term.until("Model: fake/two", "› half a thought")
        assert rig.live.status.model == "fake/two"
        term.type(ALT_P)
        await term.until("Model ›")
        term.type(ESCAPE)
        await term.until_gone("Model ›")
        assert "› half a thought" in term.shown


async def test_a_model_becomes_the_default_only_if_it_can_be_called(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/model")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("Model ›", "1/2")
        term.type("\x01")
        await term.until("claude-sonnet-4-5")
        term.type("claude-sonnet-4-5")
        await term.until("Model › claude-sonnet-4-5")
        term.type("\x1b[C")
        await term.until("thinking: off")
        term.type("\x04")
        await term.until("'anthropic/claude-sonnet-4-5' is not known")
        assert not config_file().exists()
        term.type(ALT_P)
        await term.until("Model ›")
        term.type("two")
        await term.until("Model › two")
        term.type("\x04")
        await term.until("Model: fake/two")


async def test_esc_and_then_a_letter_is_no_key_of_a_list(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(ESCAPE)
        await asyncio.sleep(0.02)
        term.type("p")
        await term.until("› p")
        assert "Model ›" not in term.shown


async def test_a_question_waits_in_one_line_while_a_list_is_open(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(ALT_P)
        await term.until("Model ›", "❯ one ")
        await rig.live.post(prompt("edit it"), LiveSession.source)
        await term.until("▎ Treadle needs an answer: Edit x.py?   tab to answer", "Model ›")
        await asyncio.sleep(1.2)
        for key in ("y", "e", "s", "1"):
            term.type(key)
            await asyncio.sleep(0.05)
        await term.until("Model › yes1", "Nothing fits.")
        await asyncio.sleep(1)
        term.type(ENTER)
        await asyncio.sleep(0.2)
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION
        assert "Model › yes1" in term.shown
        term.type(TAB)
        await term.until("▎ Allow this: Edit x.py?", "❯ Yes")
        assert "Model ›" not in term.shown


async def test_a_question_takes_the_keys_after_a_pause_when_the_list_is_closed(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until("❯ Yes")
        term.type("x")
        await term.until("tab to answer", "› x")
        term.type("\x7f")
        await asyncio.sleep(0.1)
        term.type(ALT_P)
        await term.until("Model ›", "tab to answer")
        term.type(ESCAPE)
        await term.until("❯ Yes", "ctrl-o")
        assert rig.live.status.phase is Phase.AWAITING_USER_CONFIRMATION


async def other_session(folder: Path, title: str) -> None:
    store = Store(database())
    await store.create(
        SessionRow(
            id=f"id-{title}", workspace=str(folder), model="a/b", title=title, created_at=0, updated_at=0, events=0
        )
    )
    store.close()


async def test_another_session_is_chosen_and_this_one_ends(tmp_path: Path) -> None:
    await other_session(tmp_path, "Fix the cart total")
    await other_session(tmp_path / "gone", "Elsewhere")
    chosen: list[str] = []
    async with session(tmp_path) as rig, terminal(rig.live, switch=chosen.append) as (term, task):
        await term.until(READY)
        term.type("/resume")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("Resume ›", "❯ ", "Fix the cart total", "1/1")
        term.type("\x01")
        await term.until("Elsewhere", "ctrl-a this folder")
        term.type("elsew")
        await term.until("Resume › elsew", "Its folder is gone")
        term.type(ENTER)
        await asyncio.sleep(0.3)
        assert chosen == []
        term.type("\x15cart")
        await term.until("Resume › cart", "❯ ", "1/1")
        term.type(ENTER)
        assert await task == 0
        assert chosen == ["id-Fix the cart total"]


async def test_no_other_session_is_opened_while_treadle_works(tmp_path: Path) -> None:
    await other_session(tmp_path, "Fix the cart total")
    chosen: list[str] = []
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, switch=chosen.append) as (term, _):
        await term.until(READY)
        term.type("/resume")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("Fix the cart total")
        await rig.live.post(prompt("edit it"), LiveSession.source)
        await term.until("tab to answer")
        term.type(ENTER)
        await term.until("Treadle is waiting for your answer to a question.")
        assert chosen == []


async def test_where_there_is_no_other_session_to_go_to_the_command_says_so(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("/resume")
        await asyncio.sleep(0.1)
        term.type(ENTER)
        await term.until("Another session cannot be opened from here.")


async def test_a_terminal_without_utf_8_is_shown_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda **_: "iso-8859-15")
    await other_session(tmp_path, "Fix the cart total")
    shown: list[str] = []
    async with session(tmp_path, says(text("one"))) as rig, terminal(rig.live, switch=lambda _: None) as (term, _):
        await term.until(READY)
        for keys, wanted in (("/", "/compact"), ("?", "earlier messages"), ("@cart", "> shop/cart.py")):
            term.type(keys)
            await term.until(wanted)
            shown.append(term.shown)
            term.type("\x15")
        for keys, wanted in (("/resume", "Resume >"), ("/model", "Model >")):
            term.type(keys)
            await asyncio.sleep(0.1)
            term.type(ENTER)
            await term.until(wanted, "esc close")
            shown.append(term.shown)
            term.type(ESCAPE)
            await term.until_gone(wanted)
        term.type(f"go{ENTER}")
        await term.until("* Done")
    assert [text for text in (*shown, term.shown) if not text.isascii()] == []
