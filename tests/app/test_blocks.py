from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.app.session.files.edit_blocks import block_spans, block_texts, keep_blocks, with_block_texts
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


def test_the_texts_of_blocks_are_what_each_finds_and_what_it_puts_there() -> None:
    text = f"First:\n{block('a')}then\n" + "------- SEARCH\nb\n=======\n+++++++ REPLACE\n"
    assert block_texts(text) == (("a\n", "a!\n"), ("b\n", ""))
    several = "------- SEARCH\na\n=======\nb\n=======\nc\n+++++++ REPLACE\n"
    assert [block_texts(one) for one in ("", several, block("a") + several, block("a")[:-1])][:3] == [(), (), ()]


def test_an_edit_has_exactly_the_texts_that_are_put_into_it_or_is_none() -> None:
    text = f"First:\n{block('a')}then\n{block('b', chr(13) + chr(10))}"
    assert with_block_texts(text, ["a!\n", "b!\n"]) == text, "what is the same stays to the byte"
    assert with_block_texts(text, ["new", "b!\n"]) == text.replace("a!\n", "new\n")
    assert with_block_texts(text, ["", "b!\n"]) == text.replace("a!\n", "")
    for like_a_marker in ("=======", "+++++++ REPLACE", "------- SEARCH"):
        assert with_block_texts(text, [f"x\n{like_a_marker}\ny\n", "b!\n"]) is None
    assert with_block_texts(text, ["a"]) is None
    assert with_block_texts("no block", ["a"]) is None


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=6), st.data())
def test_blocks_with_other_texts_are_read_as_those_texts(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    found = block_texts(text)
    lines = st.text(st.sampled_from("a =+-\n\r\x0c"), max_size=20) | st.sampled_from(["=======\n", "\n", ""])
    texts = [data.draw(st.just(new) | lines) for _, new in found]
    changed = with_block_texts(text, texts) if found else None
    if changed is not None:
        unix = [one.replace("\r\n", "\n").replace("\r", "\n") for one in texts]
        ended = [one if not one or one.endswith("\n") else f"{one}\n" for one in unix]
        assert [old for old, _ in block_texts(changed)] == [old for old, _ in found]
        assert [new.replace("\r", "\n") for _, new in block_texts(changed)] == ended
