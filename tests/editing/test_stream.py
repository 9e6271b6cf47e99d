"""The preview of an edit while it streams."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.editing import (
    BlockPreview,
    BlockState,
    EditError,
    EditFormat,
    EditStream,
    LineRange,
    Tier,
    apply_edit,
)

PRE = "one\ntwo\nthree\nfour\n"
TEXT = """\
------- SEARCH
two
=======
2
zwei
+++++++ REPLACE
------- SEARCH
  four
=======
  4
+++++++ REPLACE
"""


def test_a_block_is_seen_searching_writing_and_applied() -> None:
    stream = EditStream(EditFormat.SEARCH_REPLACE, PRE)
    place = LineRange(2, 2)

    seen = [stream.feed(line + "\n") for line in TEXT.split("\n")[:6]]

    assert seen == [
        (BlockPreview(1, BlockState.SEARCHING),),
        (),
        (BlockPreview(1, BlockState.WRITING, place),),
        (BlockPreview(1, BlockState.WRITING, place, arrived=("2",)),),
        (BlockPreview(1, BlockState.WRITING, place, arrived=("zwei",)),),
        (BlockPreview(1, BlockState.APPLIED, place, Tier.EXACT),),
    ]
    assert stream.text() == "one\n2\nzwei\nthree\nfour\n"


def test_a_refused_block_is_shown_and_ends_the_preview() -> None:
    stream = EditStream(EditFormat.SEARCH_REPLACE, PRE)

    stream.feed(TEXT.replace("two", "five"))

    assert [(block.number, block.state) for block in stream.blocks] == [(1, BlockState.REFUSED)]
    assert isinstance(stream.finish(), EditError)
    assert stream.text() == PRE


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            EditFormat.APPLY_PATCH,
            "*** Begin Patch\n*** Update File: a\n@@\n-two\n+2\n@@\n-four\n+4\n*** End Patch\n",
        ),
        (EditFormat.UNIFIED, "--- a\n+++ a\n@@ -2 +2 @@\n-two\n+2\n@@ -4 +4 @@\n-four\n+4\n--- b\n"),
    ],
)
def test_a_patch_is_previewed_chunk_by_chunk(form: EditFormat, text: str) -> None:
    stream = EditStream(form, PRE)

    stream.feed(text)

    assert [block.state for block in stream.blocks] == [BlockState.APPLIED, BlockState.APPLIED]
    assert stream.text() == "one\n2\nthree\n4\n"


@settings(max_examples=100)
@given(st.lists(st.integers(0, len(TEXT)), max_size=12), st.integers(0, len(TEXT)))
def test_the_end_is_the_same_however_the_text_is_cut(cuts: list[int], stop: int) -> None:
    text = TEXT[:stop]
    edges = sorted({0, stop, *(cut for cut in cuts if cut < stop)})
    stream = EditStream(EditFormat.SEARCH_REPLACE, PRE)

    for low, high in pairwise(edges):
        stream.feed(text[low:high])

    assert stream.finish() == apply_edit(EditFormat.SEARCH_REPLACE, PRE, text)
