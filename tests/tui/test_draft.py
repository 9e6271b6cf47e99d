import asyncio
import base64
import os
import zlib
from pathlib import Path

import pytest

from tests.person import BACKSPACE, CTRL_G, CTRL_R, CTRL_V, ENTER, ESCAPE, LEFT, RIGHT, TAB, UNDO, UP
from tests.tui.session import FOREVER, MODEL, Pause, calls, says, session, text
from tests.tui.terminal import Terminal, terminal
from treadle.app.config.sections import Editing
from treadle.protocol.messages import Image, Text
from treadle.protocol.models import ModelRequest

READY = "? for keys"
ASKED = "ctrl-o"
LONG = "\n".join(f"line {number}" for number in range(300))
SECOND = "\n".join(f"row {number}" for number in range(8))


def png() -> bytes:
    """The smallest picture there is."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    pixel = zlib.compress(b"\0\0\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


PNG = Image(media_type="image/png", data=base64.b64encode(png()).decode())


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


def said(request: ModelRequest) -> list[str]:
    return [block.text for block in request.messages[-1].content if isinstance(block, Text)]


async def enter(term: Terminal) -> None:
    """Press Enter by itself."""
    await asyncio.sleep(0.1)
    term.type(ENTER)


async def test_a_long_paste_is_one_piece_that_goes_away_comes_back_opens_and_is_sent_whole(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("fix ").type(pasted(LONG))
        await term.until("› fix [pasted 300 lines]", "tab opens it")
        term.type(" and ").type(pasted(SECOND))
        await term.until("› fix [pasted 300 lines] and [pasted 8 lines]")
        term.type(BACKSPACE)
        await term.until_gone("[pasted 8 lines]")
        term.type(UNDO)
        await term.until("[pasted 8 lines]")
        term.type(f"{LEFT}x{RIGHT}")
        await term.until("and x[pasted 8 lines]")
        term.type(TAB)
        await term.until("and xrow 0", "row 7")
        await enter(term)
        await term.until("ok")
        assert f"fix {LONG} and x{SECOND}" in said(rig.provider.requests[0])
        assert "› fix [pasted 300 lines] and xrow 0" in term.shown
        term.type(UP)
        await term.when(lambda: term.shown.count("› fix [pasted 300 lines]") == 2, "the draft again")


async def test_a_piece_is_whole_in_the_editor_and_a_typed_marker_stays_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/end/END/")
    async with session(tmp_path, says(text("ok")), says(text("fine"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("[pasted 300 lines] ").type(pasted(LONG)).type(" end")
        await term.until("[pasted 300 lines] [pasted 300 lines] end")
        term.type(CTRL_G)
        await term.until("[pasted 300 lines] [pasted 300 lines] END")
        await enter(term)
        await term.until("ok")
        assert f"[pasted 300 lines] {LONG} END" in said(rig.provider.requests[0])
        monkeypatch.setenv("VISUAL", "sed -i 's/line 7$/line seven/'")
        term.type(pasted(LONG))
        await term.until("› [pasted 300 lines]")
        term.type(CTRL_G)
        await term.until("line 299")
        await enter(term)
        await term.until("fine")
        assert LONG.replace("line 7\n", "line seven\n") in said(rig.provider.requests[1])


async def test_a_paste_of_a_megabyte_is_taken_back_from_the_queue_and_sent_whole(tmp_path: Path) -> None:
    huge = "\n".join(f"entry {number} {'z' * 60}" for number in range(14_000))
    async with session(tmp_path, says(Pause(FOREVER))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("esc to stop")
        await asyncio.to_thread(term.type, pasted(huge))
        await term.until("› [pasted 14,000 lines]")
        await enter(term)
        await term.until("next  [pasted 14,000 lines]")
        term.type(UP)
        await term.until("› [pasted 14,000 lines]")
        await term.until_gone("next  [pasted")
        term.type("!")
        await enter(term)
        await term.until("next  [pasted 14,000 lines]!")
        assert "entry 7" not in (tmp_path / "home/history").read_text()
        assert [queued.content for queued in rig.live.status.queue] == [(Text(text=f"{huge}!"),)]


async def test_a_paste_over_a_question_is_folded_into_the_draft(tmp_path: Path) -> None:
    async with session(tmp_path, calls("edit", "{}")) as rig, terminal(rig.live, "edit it") as (term, _):
        await term.until(ASKED)
        term.type(pasted(SECOND))
        await term.until("› [pasted 8 lines]", "tab to answer")
        assert rig.live.status.questions != ()


async def test_a_backslash_before_enter_is_a_new_line(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("one\\")
        await enter(term)
        term.type("two")
        await term.until("› one\n  two")
        await enter(term)
        await term.until("ok")
        assert "one\ntwo" in said(rig.provider.requests[0])


async def test_dragged_images_become_pieces_and_are_sent_as_images(tmp_path: Path) -> None:
    folder = tmp_path / "my pictures"
    folder.mkdir()
    for name in ("a b.png", "c.png"):
        (folder / name).write_bytes(png())
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type("look at ").type(pasted(f"'{folder}/a b.png'"))
        await term.until("› look at [image a b.png]")
        term.type(" and ").type(pasted(f"{str(folder).replace(' ', chr(92) + ' ')}/c.png "))
        await term.until("› look at [image a b.png] and [image c.png]")
        term.type(" or ").type(pasted(f"{tmp_path}/broken.png"))
        await term.until("attached.", "one · 0 of 10k")
        await enter(term)
        await term.until("■ Done")
        content = rig.provider.requests[0].messages[-1].content
        assert f"look at [image a b.png] and [image c.png] or {tmp_path}/broken.png" in said(rig.provider.requests[0])
        assert [block for block in content if isinstance(block, Image)] == [PNG, PNG]


async def test_a_model_that_sees_no_images_is_named_and_the_image_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.png").write_bytes(png())
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        monkeypatch.setattr("treadle.app.session.live.LiveSession.sees_images", False)
        term.type(pasted("c.png"))
        await term.until("› [image c.png]", f"{MODEL.ref} cannot see images.")


@pytest.mark.parametrize(("tool", "display"), [("wl-paste", "WAYLAND_DISPLAY"), ("xclip", "DISPLAY")])
async def test_ctrl_v_attaches_the_image_in_the_clipboard_or_says_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, display: str
) -> None:
    (tmp_path / "c.png").write_bytes(png())
    program = tmp_path / "bin" / tool
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nif test -e {tmp_path}/empty; then exit 1; fi\nexec cat "{tmp_path}/c.png"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(CTRL_V)
        await term.until("The clipboard's image cannot be read here.", "Save the image to a file and paste its path.")
        monkeypatch.setenv(display, ":9")
        term.type("see ").type(CTRL_V)
        await term.until("› see [clipboard image 1]")
        (tmp_path / "empty").touch()
        term.type(CTRL_V)
        await term.until("There is no image in the clipboard.")
        await enter(term)
        await term.until("ok")
        assert PNG in rig.provider.requests[0].messages[-1].content


async def test_a_clipboard_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "xclip"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async with session(tmp_path) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(CTRL_V).type("still here")
        await term.until("xclip did not answer in 3 s.", "› still here")


async def test_ctrl_r_shows_its_match_in_the_draft_and_enter_takes_it_without_sending(tmp_path: Path) -> None:
    async with session(tmp_path, says(text("one")), says(text("two"))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        for message, answer in (("fix the cart", "one"), ("test the shop", "two")):
            term.type(message)
            await enter(term)
            await term.until(answer, READY)
        term.type("a draft")
        await term.until("› a draft")
        term.type(CTRL_R).type("CART")
        await term.when(lambda: term.shown.count("› fix the cart") == 2, "the match in the draft")
        assert "search earlier messages (enter takes it, esc goes back): CART" in term.shown
        assert "I-search" not in term.shown
        term.type(ESCAPE)
        await term.until("› a draft")
        term.type(CTRL_R).type("cart")
        await term.when(lambda: term.shown.count("› fix the cart") == 2, "the match in the draft")
        await enter(term)
        await term.until_gone("search earlier messages")
        await asyncio.sleep(0.2)
        assert term.shown.count("› fix the cart") == 2
        assert len(rig.provider.requests) == 2
        term.type(" now")
        await term.until("› fix the cart now")


async def test_a_question_does_not_take_the_keys_of_a_search(tmp_path: Path) -> None:
    replies = (says(text("one")), [Pause(1.0), *calls("edit", "{}")])
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "fix the cart") as (term, _):
        await term.until("one", READY)
        term.type("go")
        await enter(term)
        await asyncio.sleep(0.1)
        term.type(CTRL_R).type("ca")
        await term.until("tab to answer", "esc goes back): ca")
        await asyncio.sleep(1.2)
        term.type("rt")
        await term.until("esc goes back): cart", "tab to answer")
        assert rig.live.status.questions != ()


async def test_vim_keys_edit_the_draft_and_escape_first_goes_to_normal_mode(tmp_path: Path) -> None:
    reply = says(text("Half"), Pause(FOREVER))
    async with session(tmp_path, reply, says(text("Fine."))) as rig, terminal(rig.live, "go", Editing.VIM) as (term, _):
        await term.until("Half", "vim: insert")
        term.type("one two three").type(ESCAPE)
        await term.until("vim: normal", "› one two three")
        assert rig.live.status.turn_active
        term.type("0dw")
        await term.until("› two three")
        term.type("u")
        await term.until("› one two three")
        term.type("ce")
        await term.until("vim: insert")
        term.type("four").type(ESCAPE)
        await term.until("› four two three", "vim: normal")
        term.type(ESCAPE)
        await term.until("■ Stopped")
        term.type(ENTER)
        await term.until("Fine.", "vim: insert")
        assert "four two three" in said(rig.provider.requests[1])


async def test_the_keys_say_what_escape_does_with_vim_keys(tmp_path: Path) -> None:
    async with session(tmp_path) as rig, terminal(rig.live, editing=Editing.VIM) as (term, _):
        await term.until(READY)
        term.type("?")
        await term.until("vim: normal mode; stop", "run a command yourself")


async def test_vim_keys_treat_a_paste_as_one_character_and_the_editor_has_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/three/THREE/")
    async with session(tmp_path, says(text("ok"))) as rig, terminal(rig.live, editing=Editing.VIM) as (term, _):
        await term.until(READY, "vim: insert")
        term.type("one ").type(pasted(LONG)).type(" three").type(ESCAPE)
        await term.until("vim: normal", "› one [pasted 300 lines] three")
        term.type("0wx")
        await term.until("› one  three")
        term.type("P")
        await term.until("› one [pasted 300 lines] three")
        term.type(CTRL_G)
        await term.until("› one [pasted 300 lines] THREE")
        term.type(ENTER)
        await term.until("ok")
        assert f"one {LONG} THREE" in said(rig.provider.requests[0])


async def test_typing_over_a_question_writes_whatever_vim_keys_did(tmp_path: Path) -> None:
    replies = ([Pause(1.0), *calls("edit", "{}")],)
    async with session(tmp_path, *replies) as rig, terminal(rig.live, "go", Editing.VIM) as (term, _):
        await term.until("vim: insert")
        term.type(ESCAPE)
        await term.until("vim: normal")
        await term.until(ASKED)
        for key in "delete it":
            term.type(key)
            await asyncio.sleep(0.05)
        await term.until("› delete it", "tab to answer")
