"""Where a rebuilt event is not the recorded one: the first field that differs."""

from collections.abc import Iterable, Mapping
from os.path import commonprefix
from typing import Any

import msgspec
from msgspec import Struct

from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.events import SCHEMA_VERSION, Event

_LONGEST = 160
_AROUND = 40
"""Characters that are shown of a long value before the first one that differs."""

ABSENT = "(nothing)"


class Recorded(Struct, frozen=True, kw_only=True):
    """An event of a log, as its row holds it: `source` and `data` are JSON, `version` is the schema they are in."""

    event: Event
    version: int
    source: bytes
    data: bytes

    @property
    def own(self) -> bool:
        """Whether the row holds the event itself, and not what an older schema said in its place."""
        return self.version == SCHEMA_VERSION


class LogDifference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The first difference: `recorded` and `rebuilt` are JSON, shortened, `path` names the field that holds them."""

    seq: int
    type: str
    path: str
    recorded: str
    rebuilt: str
    why: str = ""


class DiffersError(Exception):
    """A log that is not what is made of its inputs."""

    def __init__(self, difference: LogDifference) -> None:
        super().__init__(difference.path)
        self.difference = difference


def event_type(event: Event) -> str:
    """Name the type of an event as it is logged."""
    return str(event.data.__struct_config__.tag)


def is_same(recorded: Recorded, rebuilt: Event) -> bool:
    """Whether a row is, byte for byte, what this event would be written as."""
    stamped = recorded.event.seq, recorded.event.at, recorded.source
    return stamped == (rebuilt.seq, rebuilt.at, encode(rebuilt.source)) and recorded.data == encode(rebuilt.data)


def require_same(recorded: Recorded, rebuilt: Event, why: str = "") -> None:
    """Raise `DiffersError` where a row is not what this event would be written as."""
    if is_same(recorded, rebuilt):
        return
    event, source, data = recorded.event, encode(rebuilt.source), encode(rebuilt.data)
    before = {"seq": event.seq, "at": event.at, "source": _plain(recorded.source), "data": _plain(recorded.data)}
    after = {"seq": rebuilt.seq, "at": rebuilt.at, "source": _plain(source), "data": _plain(data)}
    found = _first(before, after, "")
    if found is None:
        found = ("data", recorded.data.decode(errors="replace"), data.decode())
        why = "The values are the same, written in other bytes."
    path, one, other = found
    raise DiffersError(
        LogDifference(
            seq=event.seq, type=event_type(event), path=path, recorded=one, rebuilt=other, why=why or _why(recorded)
        )
    )


def _why(recorded: Recorded) -> str:
    if recorded.own:
        return ""
    return f"It was written in schema {recorded.version}, by a Treadle with other words and rules."


def _plain(raw: bytes) -> Any:
    return msgspec.json.decode(raw)


def _first(before: Any, after: Any, path: str) -> tuple[str, str, str] | None:
    """Find the first field that differs, by its path; None where there is none."""
    match before, after:
        case dict(), dict():
            dot = "." if path else ""
            inside = ((f"{path}{dot}{name}", name) for name in {**before, **after})
            return _first_inside(before, after, inside)
        case list(), list():
            one, other = dict(enumerate(before)), dict(enumerate(after))
            return _first_inside(one, other, ((f"{path}[{number}]", number) for number in {**one, **other}))
        case str(), str() if before != after:
            at = max(0, len(commonprefix([before, after])) - _AROUND)  # noqa: RUF071 - characters are meant
            return path, short_json(before, at), short_json(after, at)
        case _ if type(before) is not type(after) or before != after:
            return path, short_json(before), short_json(after)
        case _:
            return None


def _first_inside(
    before: Mapping[Any, Any], after: Mapping[Any, Any], inside: Iterable[tuple[str, Any]]
) -> tuple[str, str, str] | None:
    for path, name in inside:
        if name not in before or name not in after:
            one, other = (short_json(record[name]) if name in record else ABSENT for record in (before, after))
            return path, one, other
        if found := _first(before[name], after[name], path):
            return found
    return None


def short_json(value: Any, at: int = 0) -> str:
    """Write a value as JSON, shortened; of a text what comes from character `at` on."""
    if isinstance(value, str) and at:
        value = f"…{value[at:]}"
    text = encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
