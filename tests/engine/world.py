"""What must hold of the machine and of the conversation at any time."""

from collections.abc import Iterator, Sequence

from tests.engine.exploring import World
from tests.engine.invariants import broken_invariants
from treadle.protocol.messages import Message, ToolResult, ToolUse


def check_alive(world: World) -> None:
    """Always: idle, or something in flight, or somebody is asked."""
    state = world.state
    idle = state.turn is None and not state.queue
    assert idle or world.outstanding or state.questions, state
    if state.questions:
        assert state.user_present


def notes_of(world: World) -> tuple[str, ...]:
    """Give what the model will be told with its next message."""
    return tuple(note.text for note in world.state.notes)


def check_messages(messages: Sequence[Message]) -> None:
    """Nothing that holds for every request is broken, and results are in the order of the calls."""
    assert broken_invariants(messages) == ()
    for index, message in enumerate(messages[:-1]):
        uses = [block.id for block in message.content if isinstance(block, ToolUse)]
        assert list(_results(messages[index + 1])) == uses


def _results(message: Message) -> Iterator[str]:
    return (block.call_id for block in message.content if isinstance(block, ToolResult))
