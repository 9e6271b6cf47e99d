"""A session as one HTML file: no script, nothing from outside, everything that it holds is escaped text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from treadle.app.reports.session_text import since_turn
from treadle.context.notified import notifications
from treadle.present.words import (
    counted,
    enclosed_line,
    result_for_person,
    room_made,
    shorten_middle,
    spent,
    what_came_of,
    written_by,
)
from treadle.protocol.events import Event
from treadle.protocol.messages import Text, ToolUse, UserContent
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notification,
    PromptDelivered,
    TurnEnded,
)
from treadle.protocol.tools import CallResult, Flow, Outcome
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
.add { background: var(--add); } .del { background: var(--del); }
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

    for notification in since_turn(notifications(events), turn):
        yield from _parts(notification, shown)


def _bounded(text: str) -> str:
    """Cut what no reader goes through: very long lines, and the middle of very long texts."""
    lines = (
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} more characters"
        for line in text.split("\n")
    )
    return shorten_middle("\n".join(lines), lines=_MOST_LINES, characters=_MOST_CHARACTERS)


def _parts(notification: Notification, shown: Safe) -> Iterator[str]:  # noqa: C901 - one line for each notification
    match notification:
        case PromptDelivered(content=content, enclosed=enclosed, by=by):
            beside = f'<p class="meta">{shown(enclosed_line(enclosed))}</p>' if enclosed else ""
            yield _section(
                "user",
                shown(written_by(by)) if by else "User",
                f'<div class="text">{shown(_words(content))}</div>{beside}',
            )
        case MessageDone(message=message, usage=usage, cost=cost):
            text = "".join(block.text for block in message.content if isinstance(block, Text)).strip()
            if text:
                paid = f'<p class="meta">{spent(usage, cost)}</p>' if cost else ""
                yield _section("model", "Treadle", f'<div class="text">{shown(text)}</div>{paid}')
            elif not any(isinstance(block, ToolUse) for block in message.content):
                yield _line("(an empty reply)")
        case CallChanged(
            status=CallStatus.FINISHED, flow=Flow.END_TURN, result=CallResult(outcome=Outcome.OK) as result
        ):
            yield _section("model", "Treadle", f'<div class="text">{shown(_words(result.content))}</div>')
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result) as changed:
            yield _call(changed, result, shown)
        case ContextCompacted() as made:
            yield _line(shown(room_made(made)))
        case ModeChanged(mode=mode):
            yield _line(f"mode {shown(mode)}")
        case ModelChanged(model=model, why=why):
            yield _line(shown(f"model {model}{f': {why}' if why else ''}"))
        case ChecklistChanged(text=text):
            yield _section("list", "Checklist", f"<pre>{shown(text)}</pre>")
        case TurnEnded(outcome=outcome):
            paid = spent(outcome.usage, outcome.cost)
            why = f" ({outcome.why})" if outcome.why else ""
            yield _line(shown(f"{outcome.stop}{why} after {counted(outcome.steps, 'step')}, {paid}"))
        case _:
            return


def _section(kind: str, title: str, body: str) -> str:
    return f'<section class="{kind}"><h2>{title}</h2>{body}</section>\n'


def _line(text: str) -> str:
    return f'<p class="meta">{text}</p>\n'


def _call(changed: CallChanged, result: CallResult, shown: Safe) -> str:
    title = changed.preview.title if changed.preview is not None else changed.call.name
    body = ""
    if changed.preview is not None and changed.preview.text:
        text = shown(changed.preview.text.rstrip())
        body += f"<pre>{_coloured(text) if changed.preview.is_diff else text}</pre>"
    denied = result.outcome in (Outcome.DENIED, Outcome.REJECTED)
    words = result_for_person(result, changed.decision) if denied else _words(result.content).rstrip()
    if words.strip():
        body += f"<pre>{shown(words)}</pre>"
    head = f"{shown(changed.call.name)}: {shown(title)} <span class=meta>[{what_came_of(changed, result)}]</span>"
    return f"<details><summary>{head}</summary>{body}</details>\n"


def _coloured(diff: str) -> str:
    """Mark the lines of a diff, which is escaped already."""
    kinds = {"+": "add", "-": "del"}
    lines = diff.split("\n")
    return "\n".join(f'<span class="{kinds[one[0]]}">{one}</span>' if one[:1] in kinds else one for one in lines)


def _words(content: Sequence[UserContent]) -> str:
    return "\n".join(
        block.text if isinstance(block, Text) else f"[{type(block).__name__.lower()}]" for block in content
    )
