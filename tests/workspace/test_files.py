"""Reading files: encodings, line ends, pages."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.files.encodings import Encoding
from treadle.workspace.files.text_files import TextFile, decode, missing, read_text, sha256


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
    file = TextFile(name="a.txt", text="", digest="", read_as=Encoding(name="cp1252"))
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


@pytest.mark.parametrize(
    ("raw", "new", "expected"),
    [
        ("naïve\n".encode() + b"caf\xe9\n", "naïve → ünder\ncaf\udce9\n", "naïve → ünder\n".encode() + b"caf\xe9\n"),
        ("# 测试\n".encode() + b"\xff\n", "# 测试 中é\n\udcff\n", "# 测试 中é\n".encode() + b"\xff\n"),
        ("# coding: latin-1\ncaf\xe9\n".encode("latin-1"), "# coding: latin-1\né\n", b"# coding: latin-1\n\xe9\n"),
        (b'<?xml version="1.0" encoding="GBK"?>' + "你好".encode("gbk"), "你好吗", "你好吗".encode("gbk")),
        ("Der Fuchs läuft über die Straße. Schöne Grüße.\n".encode("cp1252") * 10, "é", b"\xe9"),
        ("# 这是一个测试文件，用于检查编码。中文文本\n".encode("gbk") * 8, "好", "好".encode("gbk")),
    ],
)  # fmt: skip
def test_new_characters_are_written_where_their_bytes_are_certain(raw: bytes, new: str, expected: bytes) -> None:
    assert decode(raw, "a.txt").encode(new) == expected


SHORT = {
    "cp1252": ("café\n", "ü"),
    "cp437": ("Größe ü\n", "é"),
    "gbk": ("# 你好\n", "中"),
    "euc_kr": ("# 안녕\n", "한"),
    "shift_jis": ("# 日本\n", "語"),
    "cp1251": ("// да\n", "ж"),
    "mac_roman": ("café\n", "ü"),
}


@pytest.mark.parametrize("encoding", SHORT)
def test_an_uncertain_encoding_never_writes_a_new_character_but_keeps_the_bytes_around_ascii(encoding: str) -> None:
    text, new = SHORT[encoding]
    raw = f"a = 1\n{text}".encode(encoding)
    file = decode(raw, "a.txt")

    assert file.encode(file.text.replace("a = 1", "b = 22")) == f"b = 22\n{text}".encode(encoding)
    with pytest.raises(ToolError, match=r"not certain how a\.txt is encoded"):
        file.encode(file.text + new)


def test_short_western_text_is_not_read_as_that_of_dos_and_chinese_not_as_korean() -> None:
    western = [decode(text.encode("cp1252"), "a").encoding for text in ("café\n", 'x = "ü"\n', "naïve über\n", "été\n")]
    assert western == ["cp1252"] * 4
    assert [decode(text.encode("gbk"), "a").text for text in ("# 你好\n", "# 测试\n", "中文\n")] == [
        "# 你好\n",
        "# 测试\n",
        "中文\n",
    ]


@settings(max_examples=200)
@given(
    st.sampled_from(["cp1252", "cp437", "gbk", "shift_jis", "euc_kr", "big5", "cp1251", "utf-8"]),
    st.text(st.sampled_from("aé ü你好ж語한n\n"), max_size=30),
    st.binary(max_size=3),
    st.sampled_from("éü中ж\udce9x"),
)
def test_every_edit_leaves_all_other_bytes(encoding: str, text: str, odd: bytes, new: str) -> None:
    raw = b"first\n" + text.encode(encoding, "ignore").replace(b"\0", b"") + odd.replace(b"\0", b"")
    try:
        file = decode(raw, "a.txt")
        written = file.encode(new + file.text)
    except ToolError:
        return
    assert written.endswith(raw)
    assert len(written) > len(raw)
    sure = file.read_as
    assert new.isascii() or not sure.others or not sure.unsure(new)
