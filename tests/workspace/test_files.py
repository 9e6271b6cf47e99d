"""Reading files: encodings, line ends, pages."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.files import TextFile, decode, missing, read_text, sha256


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
        (codecs.BOM_UTF32_LE + "ä\n".encode("utf-32-le"), "ä\n", "utf-32-le", "\n"),
        (codecs.BOM_UTF32_BE + "ä\n".encode("utf-32-be"), "ä\n", "utf-32-be", "\n"),
        ("one two three\r\n".encode("utf-16-le"), "one two three\r\n", "utf-16-le", "\r\n"),
        ("one two three\n".encode("utf-16-be"), "one two three\n", "utf-16-be", "\n"),
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


@settings(max_examples=200)
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
    assert caught.value.text == "setting.py does not exist. Did you mean settings.py?"


def test_a_directory_and_a_pipe_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match="is a directory"):
        read_text(str(tmp_path), ".")
    with pytest.raises(ToolError, match="not a regular file"):
        read_text(str(tmp_path / "pipe"), "pipe")


@pytest.mark.parametrize("raw", [b"a\0b", b"a\0b\0c", bytes(range(256)), b"\0" * 100, b"\1\0" * 100])
def test_zeros_that_are_no_wide_letters_make_a_file_binary(raw: bytes) -> None:
    with pytest.raises(ToolError, match="is a binary file"):
        decode(raw, "a.txt")


def test_a_file_that_fails_while_it_is_read_is_an_error_to_read() -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs a file that opens and cannot be read")
    with pytest.raises(ToolError, match=r"m cannot be read: .*\. Continue without it"):
        read_text("/proc/self/mem", "m")


def test_a_missing_name_leads_to_the_one_that_looks_alike(tmp_path: Path) -> None:
    for name in ("README.md", "readme.txt", "a\nb.py"):
        (tmp_path / name).touch()
    (tmp_path / "gone").symlink_to("no/where")
    said = {name: missing(str(tmp_path / name), name) for name in ("Readme.MD", "a b.py", "gone", "zzzzzz")}
    assert said["Readme.MD"] == "Readme.MD does not exist. Did you mean README.md?"
    assert "Did you mean a\\nb.py" in said["a b.py"]
    assert said["gone"].startswith("gone is a link to no/where, which does not exist.")
    assert "Use list_files" in said["zzzzzz"]
