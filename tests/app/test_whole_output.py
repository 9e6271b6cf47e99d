"""The whole of a long output is read from its file in pieces, and no other file is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.app.config.places import outputs
from treadle.app.reports.whole_output import output_piece
from treadle.protocol.errors import SessionError


def _kept(data: bytes) -> str:
    folder = outputs() / "s"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "output-1.txt"
    path.write_bytes(data)
    return str(path)


@given(lines=st.lists(st.text("aä\t ", max_size=9), max_size=40), most=st.integers(1, 60))
def test_the_pieces_of_an_output_are_all_of_it(lines: list[str], most: int) -> None:
    whole = "".join(f"{line}\n" for line in lines)
    kept, before = _kept(whole.encode()), None
    pieces: list[str] = []
    while True:
        piece = output_piece(kept, max(most, 30), before)
        pieces.insert(0, piece.text)
        before = piece.begin
        if not before:
            break
    assert "".join(pieces) == whole


def test_a_secret_of_the_surroundings_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-0123456789abcdef0123")
    assert "sk-0123456789abcdef0123" not in output_piece(_kept(b"it is sk-0123456789abcdef0123\n"), 1_000).text


def test_a_file_elsewhere_is_not_read_nor_one_that_is_gone(tmp_path: Path) -> None:
    other = tmp_path / "private"
    other.write_text("mine")
    link = Path(_kept(b"")).with_name("link")
    link.unlink(missing_ok=True)
    link.symlink_to(other)
    for place in (other, link, outputs() / "s" / "gone", outputs() / "s" / ".." / ".." / "x"):
        with pytest.raises(SessionError) as caught:
            output_piece(str(place), 100)
        assert caught.value.code == "output-gone"
