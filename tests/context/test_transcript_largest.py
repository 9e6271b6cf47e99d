"""What fills the window, told to a person."""

import pytest
from tests.fakes.messages import add_user

from treadle.context.transcript import Transcript
from treadle.protocol.messages import ContentBlock, Image, Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import ToolProtocol

BIG = "x" * 36_000


def transcript(task: str, answer: ContentBlock, result: str, rounds: int = 1) -> Transcript:
    told = Transcript()
    add_user(told, results=(), prompts=((Text(text=task),),), notes=(), environment="")
    for _ in range(rounds):
        told.add_assistant(Message(role=Role.ASSISTANT, content=(answer,)))
        results = (ToolResult(call_id="c", name="read_file", content=(Text(text=result),)),)
        add_user(told, results=results, prompts=(), notes=(), environment="")
    return told


def named_parts(told: Transcript) -> list[str]:
    return [f"{name} (about {tokens:,} tokens)" for tokens, name in told.largest()]


@pytest.mark.parametrize(
    ("task", "answer", "result", "named"),
    [
        (BIG, Text(text="Yes."), "", "the text of a request (about 10,000 tokens)"),
        ("Go.", Text(text=BIG), "", "an answer of the model (about 10,000 tokens)"),
        ("Go.", Text(text="Yes."), BIG, "the result of read_file (about 10,000 tokens)"),
        ("Go.", Image(media_type="image/png", data="x"), "", "an image or a document (about 1,666 tokens)"),
    ],
)
def test_the_largest_part_is_named_with_its_size(task: str, answer: ContentBlock, result: str, named: str) -> None:
    assert named_parts(transcript(task, answer, result))[0] == named


def test_what_leaves_anyway_is_not_named() -> None:
    told = transcript("Go.", ToolUse(id="c", name="write_to_file", arguments={"content": BIG}), "")
    assert named_parts(told)[0].startswith("the call of write_to_file (about 10,00")
    for _ in range(2):
        told.add_assistant(Message(role=Role.ASSISTANT, content=(Text(text="Yes, of course."),)))
        add_user(told, results=(), prompts=((Text(text="Go on."),),), notes=(), environment="")
    assert told.droppable(1.0) == 4
    assert named_parts(told)[0] == "an answer of the model (about 4 tokens)"
    assert not Transcript().largest()


def test_where_there_is_no_message_nothing_is_left_out() -> None:
    empty = Transcript()
    empty.drop(2, "what left")
    assert empty.messages(ToolProtocol.NATIVE) == ()
