from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.app.session.files.edit_blocks import block_spans, keep_blocks
from treadle.editing.edit_results import EditError
from treadle.editing.markers import parse_blocks


def block(name: str, end: str = "\n") -> str:
    return end.join(["------- SEARCH", name, "=======", f"{name}!", "+++++++ REPLACE", ""])


def shown(text: str) -> list[str]:
    return [text[span] for span in block_spans(text)]


def test_blocks_are_found_with_their_markers_and_nothing_around_them() -> None:
    first, second = block("a"), block("b", "\r\n")
    assert shown(f"\ufeffFirst this:\n```\n{first}```\nthen\n{second}") == [first, second]


def test_a_last_block_without_a_line_feed_ends_with_the_text() -> None:
    text = block("a") + block("b").rstrip()
    assert shown(text) == [block("a"), block("b").rstrip()]


def test_what_cannot_be_read_has_no_blocks() -> None:
    assert [shown(text) for text in ("", "no block", "+++++++ REPLACE\n", block("a") + "------- SEARCH\nb\n")] == [
        []
    ] * 4


def test_what_stands_around_a_block_that_is_left_out_stays() -> None:
    text = f"x\n{block('a')}y\n{block('b')}z"
    assert keep_blocks(text, block_spans(text), [False, True]) == f"x\ny\n{block('b')}z"
    assert keep_blocks(text, block_spans(text), [True, False]) == f"x\n{block('a')}y\nz"


PIECES = st.sampled_from(
    ["a\n", "", "\r\n", "```\n", "src/a.py\n", "=======\n", block("p"), block("q", "\r\n"), block("")]
)


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=8), st.data())
def test_the_blocks_that_are_kept_are_read_as_before(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    spans, before = block_spans(text), parse_blocks(text)
    if not spans or isinstance(before, EditError):
        assert not spans
        assert isinstance(before, EditError)
        return
    kept = data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans)))
    after = parse_blocks(keep_blocks(text, spans, kept))
    wanted = [section.readings for section, keep in zip(before, kept, strict=True) if keep]
    assert wanted == ([] if isinstance(after, EditError) else [section.readings for section in after])
    assert keep_blocks(text, spans, [True] * len(spans)) == text
