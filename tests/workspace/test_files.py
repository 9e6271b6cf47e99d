"""Reading files: encodings, line ends, pages."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.files import MAX_WHOLE, Page, PageLimits, TextFile, decode, read_page, read_text, sha256


def _file(tmp_path: Path, raw: bytes, name: str = "a.txt") -> str:
    path = tmp_path / name
    path.write_bytes(raw)
    return str(path)


@pytest.mark.parametrize(
    ("raw", "text", "encoding", "newline"),
    [
        (b"one\ntwo\n", "one\ntwo\n", "utf-8", "\n"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", "utf-8", "\r\n"),
        (b"one\r\ntwo\n", "one\r\ntwo\n", "utf-8", ""),
        (b"no newline", "no newline", "utf-8", ""),
        (b"", "", "utf-8", ""),
        (codecs.BOM_UTF8 + b"x\n", "x\n", "utf-8", "\n"),
        (codecs.BOM_UTF16_LE + "ä\r\n".encode("utf-16-le"), "ä\r\n", "utf-16-le", "\r\n"),
        (codecs.BOM_UTF16_BE + "ä\n".encode("utf-16-be"), "ä\n", "utf-16-be", "\n"),
        ("déjà vu à la carte, naïve rôle\n".encode("latin-1"), "déjà vu à la carte, naïve rôle\n", "cp1252", "\n"),
        ("café\n".encode("latin-1"), "café\n", "cp1252", "\n"),
        ("// Привет, мир: это комментарий\n".encode("cp1251"), "// Привет, мир: это комментарий\n", "cp1251", "\n"),
        ("# これはテストです。日本語\n".encode("shift_jis") * 4, "# これはテストです。日本語\n" * 4, "cp932", "\n"),
    ],
)
def test_a_text_file_keeps_its_encoding_and_line_ends_as_facts(
    tmp_path: Path, raw: bytes, text: str, encoding: str, newline: str
) -> None:
    file = read_text(_file(tmp_path, raw), "a.txt")
    assert (file.text, file.encoding, file.newline, file.digest) == (text, encoding, newline, sha256(raw))
    assert file.encode(file.text) == raw


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_whatever_is_read_as_text_encodes_to_the_same_bytes(raw: bytes) -> None:
    try:
        file = decode(raw, "a.txt")
    except ToolError:
        return
    assert file.encode(file.text) == raw


def test_a_character_that_the_encoding_lacks_is_refused_by_name() -> None:
    file = TextFile(name="a.txt", text="", digest="", encoding="cp1252")
    with pytest.raises(ToolError, match=r"cp1252, which has no '\\u4e2d'"):
        file.encode("中")


def test_a_binary_file_is_refused_kindly(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is a binary file, not text"):
        read_text(_file(tmp_path, b"\x7fELF\0\0\0"), "a.out")


def test_a_missing_file_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    _file(tmp_path, b"", "settings.py")
    with pytest.raises(ToolError) as caught:
        read_text(str(tmp_path / "setting.py"), "setting.py")
    assert caught.value.text == "setting.py does not exist. That directory has: settings.py."


def test_a_directory_and_a_pipe_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match="is a directory"):
        read_text(str(tmp_path), ".")
    with pytest.raises(ToolError, match="not a regular file"):
        read_text(str(tmp_path / "pipe"), "pipe")


def test_a_page_says_where_it_is_and_how_many_lines_there_are(tmp_path: Path) -> None:
    path = _file(tmp_path, b"".join(b"line %d\n" % n for n in range(1, 11)))
    page = read_page(path, "a.txt", first=4, limits=PageLimits(lines=3))
    digest = sha256(Path(path).read_bytes())
    assert page == Page(lines=("line 4", "line 5", "line 6"), first=4, total=10, encoding="utf-8", digest=digest)
    assert page.last == 6


def test_a_page_ends_early_when_its_characters_are_used_up(tmp_path: Path) -> None:
    path = _file(tmp_path, b"12345\n" * 10)
    page = read_page(path, "a.txt", limits=PageLimits(characters=12))
    assert (page.lines, page.total) == (("12345", "12345"), 10)


def test_a_line_of_two_megabytes_is_cut_with_a_note(tmp_path: Path) -> None:
    path = _file(tmp_path, b"a" * 2_000_000 + b"\r\nlast")
    page = read_page(path, "a.txt", limits=PageLimits(width=10))
    assert page.lines == ("aaaaaaaaaa [... 1,999,990 more characters in this line]", "last")


def test_a_line_of_exactly_the_width_is_whole(tmp_path: Path) -> None:
    path = _file(tmp_path, b"1234567890\r\n12345678901\r\n")
    page = read_page(path, "a.txt", limits=PageLimits(width=10))
    assert page.lines == ("1234567890", "1234567890 [... 1 more characters in this line]")


def test_pages_of_utf_16_are_lines_of_text(tmp_path: Path) -> None:
    path = _file(tmp_path, codecs.BOM_UTF16_LE + "ein\r\nzwei\r\n".encode("utf-16-le"))
    assert read_page(path, "a.txt").lines == ("ein", "zwei")


def test_a_huge_file_is_paged_but_never_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        for _ in range(17):
            file.write(b"0123456789abcde\n" * (MAX_WHOLE // 256))
    page = read_page(str(path), "huge.log", first=500_000, limits=PageLimits(lines=2))
    assert page == Page(lines=("0123456789abcde",) * 2, first=500_000, total=None, encoding="utf-8", digest="")
    with pytest.raises(ToolError, match="too many to handle at once"):
        read_text(str(path), "huge.log")
