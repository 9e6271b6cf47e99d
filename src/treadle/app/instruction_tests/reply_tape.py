"""The tape of a test: the replies of its model, with what they were given to; recorded once and played as often."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.app.history.session_export import with_each_text, write_export
from treadle.engine.ports import Provider, TextRedactor
from treadle.protocol.base import Record
from treadle.protocol.errors import StoreError
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ModelSpec,
    StreamCallArguments,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamUsage,
)

_FOLDER = "/treadle-test-folder"
"""In the place of the folder that a run worked in, which each has its own of."""

NO_REPLY = "The tape has no further reply."


class InstructionTapeHead(Record, frozen=True, kw_only=True):
    """The first line of a tape: the model, and by their names the digests of what its replies depend on."""

    tape: int = 1
    test: str
    spec: ModelSpec
    depends_on: dict[str, str]


class InstructionTape(Struct, frozen=True, kw_only=True):
    """The replies of a run, in order."""

    head: InstructionTapeHead
    replies: tuple[tuple[StreamEvent, ...], ...]


_EVENTS = msgspec.json.Decoder(tuple[StreamEvent, ...])


def read_instruction_tape(file: Path) -> InstructionTape | None:
    """Read a tape; None where there is none. Raises `StoreError` for what is none."""
    try:
        first, *rest = file.read_bytes().splitlines() or [b""]
        head = msgspec.json.decode(first, type=InstructionTapeHead)
        return InstructionTape(head=head, replies=tuple(_EVENTS.decode(line) for line in rest))
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(
            "test-tape", f"{file} cannot be read as a tape.", why=f"{error}.", fix="Record again with --live."
        ) from error


def write_instruction_tape(file: Path, tape: InstructionTape) -> None:
    """Write a tape. Raises `ConfigError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(tape.head), *map(msgspec.json.encode, tape.replies)]
    write_export(file, [b"\n".join([*lines, b""])])
    file.chmod(0o644)  # it belongs into the repository, like the test


class RecordingModel:
    """A model whose whole replies are kept, without secrets, and without the folder that they were about."""

    def __init__(self, inner: Provider, folder: Path, redactor: TextRedactor) -> None:
        self._inner = inner
        self._folder = str(folder)
        self._redactor = redactor
        self.replies: list[tuple[StreamEvent, ...]] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Pass a reply on."""
        events: list[StreamEvent] = []
        async with aclosing(self._inner.stream(request)) as reply:
            async for event in reply:
                events.append(event)
                if isinstance(event, StreamStop):
                    self.replies.append(self._kept(events))
                yield event

    def _kept(self, events: Sequence[StreamEvent]) -> tuple[StreamEvent, ...]:
        whole = _merged(events)
        return _with_texts(whole, lambda text: self._redactor.redact(text.replace(self._folder, _FOLDER)))

    async def close(self) -> None:
        """The one who gave the model closes it."""


class PlayedModel:
    """A model that gives the replies of a tape, one to each request, about another folder."""

    def __init__(self, tape: InstructionTape, folder: Path) -> None:
        self._waiting = list(tape.replies)
        self._folder = str(folder)
        self.missing = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:  # noqa: ARG002 - the port's shape
        """Give the next reply."""
        if not self._waiting:
            self.missing += 1
            yield StreamFailure(error=ModelError(kind=ErrorKind.BAD_REQUEST, message=NO_REPLY))
            return
        for event in _with_texts(self._waiting.pop(0), lambda text: text.replace(_FOLDER, self._folder)):
            yield event

    async def close(self) -> None:
        """Nothing is held."""


def _merged(events: Sequence[StreamEvent]) -> tuple[StreamEvent, ...]:
    """Join the pieces of each text."""
    found: list[StreamEvent] = []
    for event in events:
        last = found[-1] if found else None
        match last, event:
            case StreamText(text=before), StreamText(text=text):
                found[-1] = StreamText(text=before + text)
            case StreamThinking(text=before), StreamThinking(text=text):
                found[-1] = StreamThinking(text=before + text)
            case StreamCallArguments(index=old, text=before), StreamCallArguments(index=new, text=text) if old == new:
                found[-1] = replace(event, text=before + text)
            case _, StreamUsage():
                pass
            case _:
                found.append(event)
    return tuple(found)


def _with_texts(events: Sequence[StreamEvent], change: Any) -> tuple[StreamEvent, ...]:
    plain: list[Mapping[str, Any]] = msgspec.to_builtins(events)
    return msgspec.convert(with_each_text([dict(one) for one in plain], change), tuple[StreamEvent, ...])
