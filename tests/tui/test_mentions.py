"""Files that a text names: what is completed reads as the file that it was, and nothing else is taken for one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document

from treadle.app.session.mentions.mention_text import find_named
from treadle.app.session.mentions.mention_writing import complete, mention_at
from treadle.tui.draft.mentions import MentionLexer, accented, mentioned
from treadle.workspace.files.names import _meant, existing_path, shown_name

NAMES = st.text('ab \\"x2:10\n\t\r\u202e\udcffé@,nu-', min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..") and "/" not in name
)


@given(NAMES, st.sampled_from(["", "look at ", "first\n", "@x "]), st.sampled_from(["", ":10", ":10-40"]))
def test_a_completed_name_reads_as_the_file_that_it_was(name: str, before: str, lines: str) -> None:
    shown = shown_name(f"docs/{name}")
    typed = f"{before}@do{lines}"
    mention = mention_at(typed, len(typed))
    assert mention is not None
    text, cursor = complete(typed, mention, shown)
    assert (text.startswith(before), cursor) == (True, len(text))
    assert text.removeprefix(before).isprintable()
    read = list(mentioned(text))[-1]
    assert text.endswith(f"{lines} ")
    text.encode()
    assert "/".join(map(_meant, read.split("/"))) == f"docs/{name}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("look at @shop/cart.py, please", ["shop/cart.py"]),
        ("@a.py:10-40 and @b.py:7.", ["a.py", "b.py"]),
        ('@"my docs/read me.md":3 x', ["my docs/read me.md"]),
        ("me@example.com, (@no) @", []),
        ("line\n@shop/", ["shop/"]),
        ('@"not closed', []),
    ],
)
def test_mentions_are_read_out_of_a_text(text: str, named: list[str]) -> None:
    assert list(mentioned(text)) == named


def test_a_folder_is_completed_so_that_it_can_be_followed_by_what_is_in_it() -> None:
    text = "see @my now"
    mention = mention_at(text, 7)
    assert mention is not None
    text, cursor = complete(text, mention, "my docs/")
    assert (text, cursor) == ('see @"my docs/" now', 14)
    mention = mention_at(text, cursor)
    assert mention is not None
    assert mention.path == "my docs/"
    assert complete(text, mention, "my docs/a.md") == ('see @"my docs/a.md" now', 20)


def test_there_is_a_mention_only_at_its_end_and_after_a_blank() -> None:
    assert [mention_at("a @b c", cursor) is not None for cursor in range(7)] == [
        False,
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert mention_at("a@b", 3) is None
    assert mention_at("@b" * 50_000, 100_000) is not None


@given(st.text('@ab "\n:1.', max_size=30))
def test_colouring_changes_no_character(text: str) -> None:
    assert "".join(piece for _, piece in accented(text, "user")) == text
    lexed = MentionLexer().lex_document(Document(text))
    assert "\n".join("".join(str(piece[1]) for piece in lexed(line)) for line in range(text.count("\n") + 1)) == text
    assert all(text[named.start] == "@" for named in find_named(text))


def test_a_mention_is_in_accent() -> None:
    assert accented("look at @a.py now", "user") == (("user", "look at "), ("user accent", "@a.py"), ("user", " now"))


def test_a_name_that_was_completed_is_found_on_the_disk(tmp_path: Path) -> None:
    for raw in (b"a\xffb.txt", b"new\nline", b'a "quoted" one', b"back\\slash x", "\u202ertl".encode()):
        Path(os.fsdecode(bytes(tmp_path)), os.fsdecode(raw)).touch()
        mention = mention_at("@", 1)
        assert mention is not None
        text, _ = complete("@", mention, shown_name(os.fsdecode(raw)))
        (read,) = mentioned(text)
        assert existing_path(str(tmp_path), read) == f"{tmp_path}/{os.fsdecode(raw)}"
