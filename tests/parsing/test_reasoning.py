"""Reasoning tags: told apart from text where they are reasoning, left alone elsewhere."""

import pytest
from tests.parsing.replies import READ, coalesced, read, summary

from treadle.parsing import ContentDelta, ReasoningDelta, ReasoningSplitter


def split(chunks: list[str]) -> list[object]:
    splitter = ReasoningSplitter()
    blocks = [block for chunk in chunks for block in splitter.feed(chunk)]
    return list(coalesced([*blocks, *splitter.finish()]))


@pytest.mark.parametrize(
    ("reply", "blocks"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", [ReasoningDelta("Hm."), ContentDelta("\n\nYes.")]),
        ("<think>Hm.</think>Yes.", [ReasoningDelta("Hm."), ContentDelta("Yes.")]),
        ("\n <reasoning>a </think> b", [ContentDelta("\n "), ReasoningDelta("a </think> b")]),
        ("<think></think>Yes.", [ContentDelta("Yes.")]),
        (
            "Look.\n<thinking>\nHm.\n</thinking>\nYes.",
            [ContentDelta("Look.\n"), ReasoningDelta("Hm."), ContentDelta("\nYes.")],
        ),
        ("The tag <think> is text.", [ContentDelta("The tag <think> is text.")]),
        ("Text.\n<think> is a tag.", [ContentDelta("Text.\n<think> is a tag.")]),
        ("```\n<think>\nx\n</think>\n```", [ContentDelta("```\n<think>\nx\n</think>\n```")]),
        ("Text.\n<think>", [ContentDelta("Text.\n<think>")]),
        ("</think> x <thi", [ContentDelta("</think> x <thi")]),
        ("<think>a\n</thi", [ReasoningDelta("a\n</thi")]),
    ],
)
def test_reasoning_stands_at_the_start_or_on_its_own_line(reply: str, blocks: list[object]) -> None:
    assert split([reply]) == blocks
    assert split(list(reply)) == blocks


def test_reasoning_is_shown_while_it_streams() -> None:
    splitter = ReasoningSplitter()
    assert [splitter.feed(chunk) for chunk in ["<thi", "nk>\n", "One", "\ntwo", "\n</", "think>", "\nSo"]] == [
        [],
        [],
        [ReasoningDelta("One")],
        [ReasoningDelta("\ntwo")],
        [],
        [],
        [ContentDelta("\nSo")],
    ]


def test_a_call_in_reasoning_is_reasoning_and_a_call_after_it_is_a_call() -> None:
    call = "<read_file>\n<path>a</path>\n</read_file>"
    assert summary(read(list(f"<think>\n{call}\n</think>\n{call}"), reasoning=True)) == [
        ("reasoning", call),
        ("text", "\n"),
        ("read_file", {"path": "a"}),
    ]


def test_without_the_option_reasoning_tags_are_text() -> None:
    assert read(["<think>x</think>"], tools=(READ,)) == [ContentDelta("<think>x</think>")]
