"""A reply while it is written, as hosts read it."""

from treadle.headless.frames import FrameMaker
from treadle.protocol.messages import Message, Role, Text, ToolUse
from treadle.protocol.notifications import MessageDone, TextDelta
from treadle.protocol.usage import Usage


def test_an_answer_that_says_what_the_text_before_it_says_is_written_too() -> None:
    frames = FrameMaker("s", "/w", lambda: "m", partial=True)
    answer = ToolUse(id="1", name="attempt_completion", arguments={"result": "4"})
    message = Message(role=Role.ASSISTANT, content=(Text(text="2 + 2 = 4"), answer))
    made = [
        *frames.take(TextDelta(text="2 + 2 = 4")),
        *frames.take(MessageDone(step=1, message=message, usage=Usage())),
    ]
    texts = [
        one["event"]["delta"].get("text") for one in made if one.get("event", {}).get("type") == "content_block_delta"
    ]
    (said,) = [one["message"]["content"] for one in made if one["type"] == "assistant"]
    assert texts == ["2 + 2 = 4", "4"] == [block["text"] for block in said]
