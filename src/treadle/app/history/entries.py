"""The messages of a session by the uuids that hosts know them by, and where the conversation goes back to one."""

import uuid
from collections.abc import Iterator, Sequence

from treadle.app.compose import session_log
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import ContextReady, EventData, ReplyFinished, SessionStarted
from treadle.protocol.messages import ToolUse
from treadle.protocol.sealed import PromptsDelivered, TurnSettled
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import SessionRow, Store

_NAMESPACE = uuid.UUID("6b1f0f9e-6a53-4f0e-9d0b-0d3f5a3c7e21")
_TAGS = tuple(map(tag_of, (ReplyFinished, ContextReady, PromptsDelivered, TurnSettled)))

_Events = Sequence[tuple[int, EventData]]


def entry_uuid(session_id: str, step: int, part: int = 0) -> str:
    """Name the message of a step, which is part 0, or the result of its call of that number, from 1."""
    return str(uuid.uuid5(_NAMESPACE, f"{session_id}/{step}/{part}"))


def end_of_entry(prefix: str, wanted: str, drops: str | None = None) -> int:
    """Give the event after which a conversation has nothing but what was said up to a message; 0 where it has no more.

    The message of a step goes with the results of its calls. With `drops`, the prompt of the turn that is to be left
    behind, nothing else may be. Raises `SessionError` or `ConfigError`.
    """
    with session_log(prefix) as (row, store):
        cuts = store.left_behind(row.id)
        rows = store.of_types(row.id, _TAGS)
        events = [(seq, event_data(raw, version)) for seq, _, raw, version in rows]
        events = [one for one in events if not any(one[0] in cut for cut in cuts)]
        to = _end(events, wanted, tuple(_names(store, row)))
    if to is None:
        raise SessionError(
            "entry-unknown",
            f"Session {row.id} has no message with the uuid {wanted}.",
            why="It is of another session, or no message of its conversation any more.",
            fix="Give the uuid of a message that was sent in this session, or resume the whole of it.",
        )
    later = [data for seq, data in events if seq > to]
    prompts = {one for data in later if isinstance(data, PromptsDelivered) for one in data.prompt_ids}
    if drops is not None and prompts != {drops}:
        raise ConfigError(
            "entries-dropped",
            f"Resume rejected by --resume-drops-turn: more or less than the turn of {drops or 'no prompt'} follows.",
            why=f"These prompts follow: {', '.join(sorted(prompts)) or 'none'}.",
            fix="Resume without --resume-session-at, or name another message.",
        )
    return to if any(isinstance(data, ReplyFinished | PromptsDelivered) for data in later) else 0


def _end(events: _Events, wanted: str, names: Sequence[str]) -> int | None:
    """Give the last event of a message and what belongs to it; None where it is not there."""
    for index, (_, data) in enumerate(events):
        later = events[index + 1 :]
        match data:
            case PromptsDelivered(prompt_ids=ids) if wanted in ids:
                return next((seq for seq, one in later if isinstance(one, ContextReady)), events[-1][0])
            case ReplyFinished(step=step, message=message):
                parts = range(1 + sum(isinstance(block, ToolUse) for block in message.content))
                if wanted in (entry_uuid(name, step, part) for name in names for part in parts):
                    ends = (_before(seq, one) for seq, one in later if isinstance(one, ContextReady | TurnSettled))
                    return next(ends, events[-1][0])
            case _:
                pass
    return None


def _before(seq: int, data: EventData) -> int:
    return seq if isinstance(data, TurnSettled) else seq - 1


def _names(store: Store, row: SessionRow) -> Iterator[str]:
    """Name the session, and those that it was copied from."""
    yield row.id
    while True:
        first = next(iter(store.read(row.id, before=2)), None)
        started = None if first is None else first.data
        if not isinstance(started, SessionStarted) or started.parent is None:
            return
        yield started.parent.session_id
        try:
            row = store.find(started.parent.session_id)
        except SessionError:
            return
