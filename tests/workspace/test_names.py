"""Names of any bytes, as text and back."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.workspace.files.names import existing_path, logged_path, shown_name
from treadle.workspace.files.text import visible

_PIECES = st.sampled_from(
    [b"\\", b"\\x", b"e9", b"\\n", b"\n", b" ", b"~", b"\xe9", b"\xc3\xa9", b"\xe2\x80\xae", b"a"]
)
NAMES = (st.binary(min_size=1, max_size=12) | st.lists(_PIECES, min_size=1, max_size=6).map(b"".join)).map(
    lambda raw: os.fsdecode(raw.replace(b"/", b"_").replace(b"\0", b"_"))
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain name.txt", "plain name.txt"),
        ("naïve 👩‍🚀.txt".encode(), "naïve 👩‍🚀.txt"),
        (b"caf\xe9.txt", r"caf\xe9.txt"),
        (rb"caf\xe9.txt", r"caf\\xe9.txt"),
        (rb"C:\data", r"C:\data"),
        (b"a\nb\tc\r", r"a\nb\tc\r"),
        (b" a ", r"\x20a\x20"),
        (b"~", r"\x7e"),
        ("a\u202eb\x85".encode(), r"a\u202eb\u0085"),
        (b"-rf", "-rf"),
    ],
)
def test_a_name_is_shown_on_one_line_as_nothing_else(name: bytes, shown: str) -> None:
    assert shown_name(os.fsdecode(name)) == shown


@given(st.lists(NAMES, min_size=1, max_size=20, unique=True))
def test_what_is_shown_is_valid_and_differs_for_each_name(names: list[str]) -> None:
    shown = [shown_name(name) for name in names]
    for each in shown:
        assert visible(each.encode().decode()) == each
        assert len(each.splitlines()) == 1
    assert len(set(shown)) == len(names)


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_what_is_shown_finds_the_same_file(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    base = tmp_path_factory.mktemp("names")
    there = [name for name in names if name not in (".", "..")]
    for name in there:
        (base / name).mkdir()
    for name in there:
        assert existing_path(str(base), f"{shown_name(name)}/new file") == f"{base}/{name}/new file"
        assert logged_path(f"{base}/{name}") == f"{base}/{name}"


def test_what_is_not_there_is_taken_as_it_is_written(tmp_path: Path) -> None:
    assert existing_path(str(tmp_path), r"src\new.py") == rf"{tmp_path}/src\new.py"
    (tmp_path / r"a\n").touch()
    assert existing_path(str(tmp_path), r"a\n") == rf"{tmp_path}/a\n"
    assert existing_path(str(tmp_path), r"\x2f\u0000\ud800\UFFFFFFFF") == rf"{tmp_path}/\x2f\u0000\ud800\UFFFFFFFF"
