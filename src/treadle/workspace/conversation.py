"""What the tools of a session know of the conversation that their results go into."""

from collections.abc import Callable

from msgspec import Struct

_NO_BOUND = 2**40


def _unbounded() -> int:
    return _NO_BOUND


def _holds_nothing(text: str) -> bool:  # noqa: ARG001 - no text is there
    return False


class Conversation(Struct, frozen=True, kw_only=True):
    """`room` gives how many bytes of UTF-8 the model in force takes in one result.

    `holds` says whether the conversation, as it is sent now, has a result with exactly this text.
    """

    room: Callable[[], int] = _unbounded
    holds: Callable[[str], bool] = _holds_nothing
