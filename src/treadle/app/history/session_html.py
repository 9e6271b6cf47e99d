"""A session as one HTML file: no script, nothing from outside, everything that it holds is escaped text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby, pairwise

from treadle.app.reports.session_text import session_items
from treadle.present.item_lines import note_line
from treadle.present.items import (
    CallItem,
    ChecklistItem,
    CompactedItem,
    Item,
    Placed,
    ProblemItem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
)
from treadle.present.record_words import CAME_BACK, LEFT_CONVERSATION, call_record, file_lines, turn_words
from treadle.present.words import counted, enclosed_line, shorten_middle, written_by
from treadle.protocol.events import Event
from treadle.store.sqlite import SessionRow

_MOST_LINES, _MOST_CHARACTERS = 2_000, 200_000
_LONGEST_LINE = 4_000

_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #f6f8fa; --add: #dafbe1; --del: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --soft: #1c2128; --add: #12361f; --del: #471a1c; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
pre, .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; margin: .5rem 0; }
pre { font: 13px/1.45 ui-monospace, monospace; background: var(--soft); border: 1px solid var(--line);
      border-radius: 6px; padding: .6rem; max-height: 40rem; overflow: auto; }
section { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.2rem 0; }
section.user { border-color: #0969da; } h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0; }
summary { cursor: pointer; overflow-wrap: anywhere; } .meta { opacity: .75; font-size: .875rem; }
.left { opacity: .6; } .add { background: var(--add); } .del { background: var(--del); }
"""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

Safe = Callable[[str], str]
"""Hides secrets in a text, and shows what would steer or hide in it."""


def session_page(row: SessionRow, events: Iterable[Event], safe: Safe, *, turn: int = 1) -> Iterator[str]:
    """Write a session, from a turn on, as a page, piece by piece."""

    def shown(text: str) -> str:
        return escape(_bounded(safe(text)))

    day = f"{datetime.fromtimestamp(row.created_at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    title = shown(row.title or row.id)
    yield (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        f'<p class="meta">Session {shown(row.id)} in {shown(row.workspace)}, {shown(row.model)}, {day}, '
        f"{counted(row.events, 'event')}</p>\n"
    )
    yield from session_body(events, safe, turn=turn)
    yield "</body></html>\n"


def session_body(events: Iterable[Event], safe: Safe, *, turn: int = 1) -> Iterator[str]:
    """Write what stands on the page below its title."""

    def shown(text: str) -> str:
        return escape(_bounded(safe(text)))

    view, items = session_items(events, turn=turn)
    for left, group in groupby(items, view.has_left):
        pieces = _written(group, shown)
        if left:
            yield f'<div class="left">{_line(LEFT_CONVERSATION)}'
            yield from pieces
            yield f"{_line(CAME_BACK)}</div>\n"
        else:
            yield from pieces
    if view.active and view.listed:
        yield from _parts(ChecklistItem(view.checklist), shown)


def _written(group: Iterable[Placed], shown: Safe) -> Iterator[str]:
    """Write items; blocks of prose that follow on each other are one answer."""
    items = (placed.item for placed in group if not isinstance(placed.item, ThoughtItem))
    for is_prose, some in groupby(items, lambda item: isinstance(item, ProseItem)):
        if is_prose:
            yield _answer([one for one in some if isinstance(one, ProseItem)], shown)
            continue
        for item in some:
            yield from () if item is None else _parts(item, shown)


def _bounded(text: str) -> str:
    """Cut what no reader goes through: very long lines, and the middle of very long texts."""
    lines = (
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} more characters"
        for line in text.split("\n")
    )
    return shorten_middle("\n".join(lines), lines=_MOST_LINES, characters=_MOST_CHARACTERS)


def _parts(item: Item, shown: Safe) -> Iterator[str]:
    match item:
        case SaidItem(text=text, enclosed=enclosed, by=by, commands=commands):
            beside = "".join(f"<pre>{shown(command.rstrip())}</pre>" for command in commands)
            beside += f'<p class="meta">{shown(enclosed_line(enclosed))}</p>' if enclosed else ""
            yield _section("user", shown(written_by(by)) if by else "User", f"{_text(text, shown)}{beside}")
        case CallItem():
            yield _call(item, shown)
        case ChecklistItem(markdown=text):
            yield _section("list", "Checklist", f"<pre>{shown(text)}</pre>")
        case ProblemItem(what=what, why=why, fix=fix):
            yield _section("problem", shown(what), "".join(_line(shown(one)) for one in (why, fix) if one))
        case TurnItem():
            yield _line(shown(turn_words(item)))
            yield from (_line(shown(line)) for line in file_lines(item))
        case CompactedItem(made=made):
            summary = f"<pre>{shown(made.summary)}</pre>" if made.summary else ""
            yield _line(shown(note_line(item))) + summary
        case _:
            if line := note_line(item):
                yield _line(shown(line))


def _answer(blocks: Sequence[ProseItem], shown: Safe) -> str:
    """Write what the model said in one piece."""
    text = blocks[0].written
    for before, block in pairwise(blocks):
        text = text + block.written if before.ends else f"{text}\n\n{block.written}"
    return _section("model", "Treadle", _text(text.strip(), shown))


def _text(text: str, shown: Safe) -> str:
    return f'<div class="text">{shown(text)}</div>'


def _section(kind: str, title: str, body: str) -> str:
    return f'<section class="{kind}"><h2>{title}</h2>{body}</section>\n'


def _line(text: str) -> str:
    return f'<p class="meta">{text}</p>\n'


def _call(item: CallItem, shown: Safe) -> str:
    record = call_record(item)
    body = f"<pre>{shown(record.asked)}</pre>" if record.asked else ""
    body += f"<pre>{_coloured(shown(record.diff))}</pre>" if record.diff else ""
    body += f"<pre>{shown(record.output)}</pre>" if record.output.strip() else ""
    head = f"{shown(record.title)} <span class=meta>[{shown(record.facts)}]</span>"
    return f"<details><summary>{head}</summary>{body}</details>\n"


def _coloured(diff: str) -> str:
    """Mark the lines of a diff, which is escaped already."""
    kinds = {"+": "add", "-": "del"}
    lines = diff.split("\n")
    return "\n".join(f'<span class="{kinds[one[0]]}">{one}</span>' if one[:1] in kinds else one for one in lines)
