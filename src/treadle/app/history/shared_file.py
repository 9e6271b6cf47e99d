"""A session as a file to give away: which turns it has, what it would hold, and which secrets are hidden in it."""

from collections import Counter
from collections.abc import Mapping
from itertools import takewhile

from msgspec import Struct

from treadle.app.compose import open_store
from treadle.app.history.session_export import export_session, hidden_events, hidden_row
from treadle.app.history.session_html import session_body
from treadle.app.reports.session_text import as_it_ended
from treadle.context.notified import notifications
from treadle.present.words import clip_text, written_text
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.notifications import PromptDelivered, TurnStarted
from treadle.protocol.patterns import regex
from treadle.workspace.files.text import visible

FORMS: Mapping[str, str] = {"html": "text/html", "md": "text/markdown", "json": "application/x-ndjson"}
"""The forms of a file, and the type of each."""

_HIDDEN = regex(r"\[hidden: ([^\]\n]{1,120})\]")
_FIRST_WORDS = 100
_MOST_PREVIEW = 400_000


class SessionTurn(Record, frozen=True, kw_only=True):
    """One turn, counted from 1, and the first words of what began it."""

    number: int
    words: str


class SharedFile(Struct, frozen=True, kw_only=True):
    """A file without secrets; `hidden` counts by name the places where one was."""

    name: str
    media_type: str
    content: bytes
    hidden: Mapping[str, int]


class SharePreview(Struct, frozen=True, kw_only=True):
    """What an HTML file would show, from a turn on. `html` is safe; it is the beginning where it is not `whole`."""

    id: str
    title: str
    turns: tuple[SessionTurn, ...]
    html: str
    whole: bool


def make_shared_file(prefix: str, form: str, *, turn: int = 1, redact: bool = True) -> SharedFile:
    """Make the file, with every secret hidden that is known; JSON holds them without `redact`.

    Raises `ConfigError`, `SessionError` or `StoreError`.
    """
    if form not in FORMS:
        raise ConfigError("export-form", f"There is no form {form[:20]!r}.", fix=f"Choose {', '.join(FORMS)}.")
    store = open_store()
    try:
        session_id = store.find(prefix).id
    finally:
        store.close()
    content = b"".join(export_session(session_id, form, redact=redact, turn=turn))
    return SharedFile(
        name=f"treadle-{session_id}.{'jsonl' if form == 'json' else form}",
        media_type=FORMS[form],
        content=content,
        hidden=_count_hidden(content.decode(errors="replace")),
    )


def _count_hidden(text: str) -> Mapping[str, int]:
    return dict(Counter(found[1] for found in _HIDDEN.finditer(text)).most_common())


def preview_share(prefix: str, *, turn: int = 1) -> SharePreview:
    """Say what the file would hold. Raises `SessionError` or `StoreError`."""
    store = open_store()
    try:
        row = store.find(prefix)
        row, hide = hidden_row(row, store)
        events = list(hidden_events(as_it_ended(store, row.id, store.read(row.id)), hide))
    finally:
        store.close()
    turns: list[SessionTurn] = []
    begun = 0
    for notification in notifications(events):
        match notification:
            case TurnStarted():
                begun += 1
            case PromptDelivered(content=content) if begun > len(turns):
                words = clip_text(written_text(content), _FIRST_WORDS)
                turns.append(SessionTurn(number=begun, words=words))
            case _:
                pass
    size = 0

    def fits(piece: str) -> bool:
        nonlocal size
        size += len(piece)
        return size <= _MOST_PREVIEW

    html = "".join(takewhile(fits, session_body(events, lambda text: visible(hide(text)), turn=turn)))
    return SharePreview(
        id=row.id,
        title=row.title or row.id,
        turns=tuple(turns),
        html=html,
        whole=size <= _MOST_PREVIEW,
    )
