"""Where each block of a request comes from."""

from msgspec import Struct

from treadle.protocol.messages import Message


class Provenance(Struct, frozen=True):
    """What a block is, and what it comes from: a path, a tool, a question; event `seq` brought it.

    `kind` is that of a passage or an enclosure, or `prompt`, `reply`, `thinking`, `call`, `result`, `answer` (of the
    user to the question `origin`), `rejection` (of a call, by the user), `read` (the result of reading `origin`),
    `left out` (what stands for messages that left). The newest of all reads with the same `key` supersedes the others.
    """

    kind: str
    origin: str = ""
    seq: int = 0
    key: str = ""


class Entry(Struct, frozen=True):
    """One message, the event that completed it, what the user said in it, and where each of its blocks comes from."""

    message: Message
    seq: int
    asked: tuple[str, ...]
    sources: tuple[Provenance, ...]


_UNKNOWN = Provenance("")


def sources_of(entry: Entry) -> tuple[Provenance, ...]:
    """Give the source of each block, also of a message that was put together without."""
    return entry.sources or (_UNKNOWN,) * len(entry.message.content)
