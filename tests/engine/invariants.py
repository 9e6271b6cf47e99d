"""What holds for every request, whatever left it: the rules that providers and the work depend on."""

from collections.abc import Callable, Sequence

from treadle.context.media import images_of
from treadle.context.sizes import MOST_IMAGE_DATA, MOST_IMAGES
from treadle.protocol.messages import Message, Role, Text, ToolResult, ToolUse


def roles_take_turns(messages: Sequence[Message]) -> bool:
    """Whether the user begins, and nobody speaks twice in a row."""
    return all(message.role is (Role.ASSISTANT if at % 2 else Role.USER) for at, message in enumerate(messages))


def calls_have_results(messages: Sequence[Message]) -> bool:
    """Whether each call is followed by its result in the next message, and each result follows its call.

    The calls of the last message may still wait.
    """
    for at, message in enumerate(messages):
        calls = [block.id for block in message.content if isinstance(block, ToolUse)]
        before = messages[at - 1].content if at else ()
        asked = [block.id for block in before if isinstance(block, ToolUse)]
        results = [block.call_id for block in message.content if isinstance(block, ToolResult)]
        if sorted(results) != sorted(asked) or (calls and message.role is not Role.ASSISTANT):
            return False
    return True


def says_something(messages: Sequence[Message]) -> bool:
    """Whether no message is empty, and no text of one."""
    return all(
        message.content and all(block.text for block in message.content if isinstance(block, Text))
        for message in messages
    )


def images_are_few(messages: Sequence[Message]) -> bool:
    """Whether there are no more images, and no larger ones, than a provider takes."""
    found = [images_of(message) for message in messages]
    return sum(count for count, _ in found) <= MOST_IMAGES and sum(data for _, data in found) <= MOST_IMAGE_DATA


INVARIANTS: tuple[Callable[[Sequence[Message]], bool], ...] = (
    roles_take_turns,
    calls_have_results,
    says_something,
    images_are_few,
)


def broken_invariants(messages: Sequence[Message]) -> tuple[str, ...]:
    """Name the rules that a request breaks."""
    return tuple(rule.__name__ for rule in INVARIANTS if not rule(messages))
