"""Reading texts page by page."""

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.protocol.errors import ToolError
from treadle.workspace.files.pages import Page, PageLimits, page_of, read_page
from treadle.workspace.files.text import visible
from treadle.workspace.files.text_files import MAX_WHOLE, read_text, sha256


def _file(tmp_path: Path, raw: bytes) -> str:
    path = tmp_path / "a.txt"
    path.write_bytes(raw)
    return str(path)


def test_a_page_says_where_it_is_and_how_many_lines_there_are(tmp_path: Path) -> None:
    path = _file(tmp_path, b"".join(b"line %d\n" % n for n in range(1, 11)))
    page = read_page(path, "a.txt", first=4, limits=PageLimits(lines=3))
    digest = sha256(Path(path).read_bytes())
    assert page == Page(lines=("line 4", "line 5", "line 6"), first=4, total=10, encoding="utf-8", digest=digest)
    assert page.last == 6


def test_a_page_ends_early_when_its_room_is_used_up(tmp_path: Path) -> None:
    path = _file(tmp_path, b"12345\n" * 10)
    page = read_page(path, "a.txt", limits=PageLimits(size=30))
    assert (page.lines, page.total) == (("12345", "12345"), 10)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=60), max_size=30),
    st.integers(100, 2000),
)
def test_pages_are_bounded_in_bytes_and_together_give_every_line(lines: list[str], size: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    first = 1
    pages: list[str] = []
    while first <= len(lines):
        page = page_of(text, "", first=first, limits=PageLimits(size=size))
        assert page.lines
        assert len("\n".join(page.lines).encode()) <= max(size, 600)
        pages += page.lines
        first = page.last + 1
    assert pages == [visible(line) for line in lines]


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
    with pytest.raises(ToolError, match="which is too large"):
        read_text(str(path), "huge.log")


def test_a_page_can_be_taken_of_any_text() -> None:
    page = page_of("one\ntwo\nthree", "digest", first=2, limits=PageLimits(lines=1))
    assert page == Page(lines=("two",), first=2, total=3, encoding="utf-8", digest="digest")
