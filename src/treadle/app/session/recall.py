"""What a resumed session knows from its log, of the files too: what changed since makes an edit stale again."""

import os
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from treadle.app.session.files.edit_ledger import Ledger
from treadle.app.session.mentions.mention_text import without_lines
from treadle.engine.core.past_history import Past, read_past
from treadle.protocol.checkpoints import Restored
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    Compacted,
    EditQueued,
    Event,
    Noted,
    Prompt,
    SessionStarted,
)
from treadle.protocol.messages import EnclosureKind
from treadle.protocol.sealed import PassageKind
from treadle.protocol.tools import Outcome, ReadPath, WritePath
from treadle.workspace.files.names import existing_path, logged_path
from treadle.workspace.files.seen import SeenFiles


class PastFiles:
    """The files that a session read or wrote, taken from its events one after another."""

    def __init__(self) -> None:
        self._reads: dict[str, tuple[str, ...]] = {}
        self._writes: dict[str, tuple[str, ...]] = {}
        self._known: dict[str, int | str] = {}
        self._workspace = "/"

    def take(self, event: Event) -> None:  # noqa: C901 - one line for each event
        """Note the files of an event."""
        match event.data:
            case SessionStarted(workspace=workspace):
                self._workspace = logged_path(workspace)
            case Prompt(enclosed=enclosed) | EditQueued(enclosed=enclosed) | Answer(enclosed=enclosed) if enclosed:
                mentioned = (without_lines(one.origin) for one in enclosed if one.kind is EnclosureKind.FILE)
                self._known.update(
                    (os.path.realpath(existing_path(self._workspace, path)), event.at) for path in mentioned
                )
            case CallJudged(call_id=call_id, accesses=accesses):
                self._writes[call_id] = tuple(access.path for access in accesses if isinstance(access, WritePath))
                self._reads[call_id] = tuple(
                    access.path for access in accesses if isinstance(access, ReadPath) and not access.listing
                )
            case CallFinished(call_id=call_id, result=result):
                read = self._reads.pop(call_id, ())
                if result.outcome is Outcome.OK:
                    self._known.update((os.path.realpath(logged_path(path)), event.at) for path in read)
                written = self._writes.pop(call_id, ())
                for change in result.changes:
                    path = logged_path(change.path)
                    if change.path in written:
                        self._known[path] = change.after
                    elif not change.after:
                        self._known.pop(path, None)  # its result says that it is gone
                    elif path in self._known:
                        self._known[path] = 0  # what a command did to it, the model did not see
            case Restored(removed=removed):
                for path in removed:
                    self._known.pop(logged_path(path), None)
            case _:
                pass

    def note(self, seen: SeenFiles) -> None:
        """Tell which files were seen as they are; looks at the times of those that were read."""
        _note(self._known, seen)


class PastRules:
    """The origins of the rules that the conversation still holds from notes, taken from the events."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.left: dict[str, None] = {}

    def take(self, event: Event) -> None:
        """Note the rules of an event; where messages leave, those that were read may have left with them."""
        match event.data:
            case Noted(notes=notes):
                self.read.update((note.origin, None) for note in notes if note.kind is PassageKind.RULES)
            case Compacted():
                self.left, self.read = {**self.left, **self.read}, {}
            case _:
                return
        self.left = {origin: None for origin in self.left if origin not in self.read}


class Recalled(Struct, frozen=True, kw_only=True):
    """What a log says so far: for the engine, of the files and rules, and for the ledger of edits."""

    past: Past
    files: PastFiles
    ledger: Ledger
    rules: PastRules


def recall(events: Iterable[Event]) -> Recalled:
    """Go through a log once; its events are not kept."""
    files, ledger, rules = PastFiles(), Ledger(), PastRules()

    def noted() -> Iterator[Event]:
        for event in events:
            files.take(event)
            rules.take(event)
            ledger.follow(event)
            yield event

    return Recalled(past=read_past(noted()), files=files, ledger=ledger, rules=rules)


def _note(known: Mapping[str, int | str], seen: SeenFiles) -> None:
    """Take for each file the time when it was read, or the hash that it was written with."""
    for path, last in known.items():
        if isinstance(last, str):
            seen.recall(path, last)
        elif _changed_after(path, last):
            seen.recall(path, None)
        else:
            seen.recall_read(path)


def _changed_after(path: str, at: int) -> bool:
    """Whether a file was changed or deleted after a time, in milliseconds since 1970."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path per file costs more than the look
    except OSError:
        return True
    # A file that is put back brings its old mtime along, but not its ctime.
    return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000 > at
