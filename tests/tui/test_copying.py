"""What /copy gives to the clipboard: the text of the answer as the model wrote it."""

import os
from base64 import b64decode
from pathlib import Path

import pytest

from tests.person import ENTER
from tests.tui.session import calls, says, session, text
from tests.tui.terminal import Terminal, terminal
from tests.tui.test_surface import confirm
from treadle.app.slash.copying import CodeBlock, code_blocks
from treadle.tui.draft.clipboard import clean_text, copied_words, fill_clipboard, terminal_copy, writer_of

READY = "? for keys"
LONG = "It counts every item of the cart, and then the discount " * 3
ANSWER = f"""{LONG}

- in the cart:

  ```python
  def total(self):
      return 1
  ```

~~~~
```
plain
~~~~
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)


def copied(term: Terminal) -> list[str]:
    """What the terminal was given for its clipboard."""
    return [b64decode(one.removeprefix("c;")).decode() for one in term.notifications if one.startswith("c;")]


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program for the clipboard, first on the path; gives the file that it fills."""
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")
    return folder / "clipboard"


async def test_the_last_answer_is_copied_as_it_was_written(tmp_path: Path) -> None:
    replies = says(text("before")), says(text(ANSWER))
    async with session(tmp_path, *replies) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        term.type(f"/copy{ENTER}")
        await term.until("There is no answer to copy yet.")
        term.type(f"one{ENTER}")
        await term.until("before", "■ Done")
        term.type(f"two{ENTER}")
        await term.when(lambda: term.shown.count("■ Done") == 2, "the end of the second turn")
        term.type(f"/copy{ENTER}")
        whole = ANSWER.strip("\n")
        await term.until(f"The last answer: {len(whole)} characters sent to the terminal (OSC 52)")
        assert copied(term) == [whole]
        term.type(f"/copy 1{ENTER}")
        await term.until("Block 1 of 2: 29 characters sent to the terminal")
        term.type(f"/copy 2{ENTER}")
        await term.until("Block 2 of 2: 9 characters sent to the terminal")
        assert copied(term)[1:] == ["def total(self):\n    return 1", "```\nplain"]
        term.type(f"/copy list{ENTER}")
        await term.until("1: python, 2 lines: def total(self):", "2: 2 lines: ```", "/copy N copies one.")
        term.type(f"/copy 3{ENTER}")
        await term.until("The last answer has 2 blocks of code. /copy list shows them.")
        assert len(copied(term)) == 3


async def test_an_answer_between_calls_is_not_part_of_the_last_one(tmp_path: Path) -> None:
    first = [text("I look first."), *calls("edit", "{}")]
    async with session(tmp_path, first, says(text("It is **this**."))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("I look first.", "Allow this: Edit x.py?")
        await confirm(term)
        await term.until("It is this", "■ Done")
        term.type(f"/copy{ENTER}")
        await term.until("The last answer: 15 characters")
        assert copied(term) == ["It is **this**."]


async def test_what_would_press_keys_where_it_is_pasted_is_left_out(tmp_path: Path) -> None:
    hostile = "ls\x1b[201~\nrm -rf /\x9b0m\ttab"
    async with session(tmp_path, says(text(hostile))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("■ Done")
        term.type(f"/copy{ENTER}")
        await term.until("22 characters (2 control characters left out)")
        assert copied(term) == ["ls[201~\nrm -rf /0m\ttab"]


async def test_a_program_fills_the_clipboard_and_the_line_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = program(
        tmp_path, "xclip", f'test "$*" = "-selection clipboard -in" && cat > {tmp_path}/clipboard', monkeypatch
    )
    monkeypatch.setenv("DISPLAY", ":9")
    async with session(tmp_path, says(text("Grüße"))) as rig, terminal(rig.live, "go") as (term, _):
        await term.until("■ Done")
        term.type(f"/copy{ENTER}")
        await term.until("The last answer: 5 characters copied to the clipboard by xclip, and sent to the terminal.")
        assert (file.read_text(), copied(term)) == ("Grüße", ["Grüße"])


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$"])
def test_a_program_that_fails_copied_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program(tmp_path, "wl-copy", script, monkeypatch)
    monkeypatch.setenv("WAYLAND_DISPLAY", "w")
    assert fill_clipboard("text") == ""


def test_the_program_is_the_one_of_the_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wl-copy", "xclip", "xsel", "tmux", "pbcopy"):
        program(tmp_path, name, "true", monkeypatch)
    path = {"PATH": str(tmp_path / "bin")}
    chosen = [
        writer_of({**path, **more}, platform)[:1]
        for more, platform in (
            ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux"),
            ({"DISPLAY": ":0", "TMUX": "t"}, "linux"),
            ({"TMUX": "t"}, "linux"),
            ({}, "darwin"),
            ({}, "linux"),
        )
    ]
    assert chosen == [("wl-copy",), ("xclip",), ("tmux",), ("pbcopy",), ()]


def test_a_terminal_that_takes_none_or_not_that_much_is_sent_none() -> None:
    assert terminal_copy("a", {"TERM": "xterm"}) == "\x1b]52;c;YQ==\a"
    assert [terminal_copy("a", {"TERM": term}) for term in ("dumb", "linux", "")] == ["", "", ""]
    assert terminal_copy("a", {"TERM": "screen", "STY": "1.tty"}) == ""
    most = 74_994 // 4 * 3
    assert terminal_copy("x" * most, {"TERM": "xterm"})
    assert terminal_copy("x" * (most + 1), {"TERM": "xterm"}) == ""
    assert "is not copied: 1 character " in copied_words("It", "a", 0, program="", terminal=False)


def test_line_ends_and_halves_of_characters_are_made_plain() -> None:
    assert clean_text("a\r\nb\rc\ud800") == ("a\nbc", 2)


def test_blocks_of_code_are_found_as_markdown_has_them() -> None:
    assert code_blocks("no ``` here\n") == ()
    assert code_blocks("```sh -x\n a\n\n```\n~~~\nopen") == (CodeBlock("sh -x", " a\n"), CodeBlock("", "open"))
    assert code_blocks("   ```\n  two\n     five\n   ```") == (CodeBlock("", "two\n  five"),)
    assert code_blocks("````\n```\ninner\n```\n````") == (CodeBlock("", "```\ninner\n```"),)
