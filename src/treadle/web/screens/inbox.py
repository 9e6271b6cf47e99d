"""The screen of everything that waits for a person, over all sessions."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.opening import branch_of
from treadle.door.past import SessionState
from treadle.present.question_words import QuestionWords, asked_in_words
from treadle.present.words import counted
from treadle.protocol.errors import TreadleError
from treadle.protocol.permissions import Question, QuestionKind
from treadle.web.book import SessionBook
from treadle.web.item_html import in_milliseconds
from treadle.web.page_keys import Visitor
from treadle.web.page_requests import book_of, page, visitor_of
from treadle.web.question_cards import places_words
from treadle.web.question_kinds import DANGER, EDITS, ENDED, INBOX_GROUPS, AskedKind, asked_kind
from treadle.web.rights import PageRoute
from treadle.web.session_rows import ListFilter, page_rows, project_name
from treadle.web.status import ASKED
from treadle.web.templating import render

_ALLOW = 'data-act="allow"'
"""What a card has that may be answered with yes from where it is shown."""

_ALIKE = frozenset({"runs", "writes", "git"})
"""Effects of commands that may be allowed together."""

_KEYS = (("Ctrl ↵", "allow", "allow"), ("x", "reject", "reject"), ("c", "comment", "comment"))
"""Keys of a card: what each does, and the button that it stands for."""

_ORDERS = (("", "By kind"), ("session", "By session"), ("oldest", "Oldest first"))


class WaitingCard(Struct, frozen=True, kw_only=True):
    """A question that waits: its row in the list, and its card. `since` is when its session began to wait (ms).

    `step` is the one that asks, 0 where that is not known; `before` are the calls that came before it. `keys` are those
    that answer it, each with what it does.

    Those with the same word `together`, none where it is empty, have one effect, and may be allowed together. `alike`
    are the ids of those, where it is one of several.
    """

    id: str
    session: str
    title: str
    project: str
    branch: str = ""
    kind: AskedKind
    asked: str
    about: str
    figures: tuple[int, int] | None
    html: str
    since: int | None = None
    step: int = 0
    before: Sequence[str] = ()
    keys: Sequence[tuple[str, str]] = ()
    together: str = ""
    alike: Sequence[str] = ()


async def _show(request: Request) -> Response:
    by = _order(request)
    return await page(request, "inbox.html", by=by, orders=_ORDERS, **await _waiting(request, by))


async def _list(request: Request) -> Response:
    """Give the list and the cards alone, for a page that is open already."""
    return HTMLResponse(render("cards.html", **await _waiting(request, _order(request))))


def _order(request: Request) -> str:
    wanted = request.query_params.get("by", "")
    return wanted if wanted in dict(_ORDERS) else ""


def _names(book: SessionBook) -> dict[str, tuple[str, str]]:
    """Give the title of each open session, and the branch of its folder. Takes its time."""
    return {
        id_: (one.session.title or id_, branch_of(Path(one.session.workspace)))
        for id_, one in tuple(book.opened.items())
        if one.questions
    }


async def _waiting(request: Request, by: str) -> dict[str, Any]:
    book, who = book_of(request), visitor_of(request)
    names = await asyncio.to_thread(_names, book)
    cards = [*_cards(book, who, names), *await asyncio.to_thread(_left, book)]
    working = sum(one.session.status.turn_active and not one.questions for one in book.opened.values())
    key: Callable[[WaitingCard], str] = {"session": _of_session, "oldest": _of_all}.get(by, _of_kind)
    cards.sort(key=lambda one: _rank(one, by))
    alike: dict[str, list[str]] = {}
    for one in cards:
        if one.together:
            alike.setdefault(one.together, []).append(one.id)
    cards = [replace(one, alike=ids) if len(ids := alike.get(one.together, ())) > 1 else one for one in cards]
    return {
        "cards": cards,
        "groups": [_group(name, list(found)) for name, found in groupby(cards, key)],
        "working": working,
        "counted": cards
        and f"{counted(len(cards), 'question')} of {counted(len({one.session for one in cards}), 'session')}",
    }


def _group(name: str, cards: Sequence[WaitingCard]) -> tuple[str, Sequence[WaitingCard], Sequence[str]]:
    """Give a group of the list: its name, its cards, and those of one effect, if all that there are stand there."""
    alike = next((one.alike for one in cards if one.alike), ())
    return name, cards, alike if {*alike} <= {one.id for one in cards} else ()


def _rank(card: WaitingCard, by: str) -> tuple[int, str]:
    match by:
        case "session":
            return 0, card.title
        case "oldest":
            return card.since or 0, ""
        case _:
            return INBOX_GROUPS.index(card.kind.group), ""


def _of_kind(card: WaitingCard) -> str:
    return card.kind.group


def _of_session(card: WaitingCard) -> str:
    return card.title


def _of_all(_: WaitingCard) -> str:
    return "Oldest first"


def _cards(book: SessionBook, who: Visitor, names: Mapping[str, tuple[str, str]]) -> list[WaitingCard]:
    found = []
    for id_, one in book.opened.items():
        questions = {question.id: question for question in one.questions}
        since = one.content.view.asking
        title, branch = names.get(id_, (id_, ""))
        for question_id, html in one.cards(who, apart=True):
            question = questions[question_id]
            words = asked_in_words(question, one.roots)
            kind = asked_kind(question, words)
            found.append(
                WaitingCard(
                    id=f"c-{id_}-{question_id}",
                    session=id_,
                    title=title,
                    project=project_name(str(one.session.workspace)),
                    branch=branch,
                    kind=kind,
                    asked=words.title,
                    about=_about(question, words),
                    figures=None if words.text else words.figures,
                    html=html,
                    since=None if since is None else in_milliseconds(since),
                    step=one.content.view.step,
                    before=one.content.last_calls(),
                    keys=list(_keys(kind, html)),
                    together=_together(kind, question, words) if _ALLOW in html else "",
                )
            )
    return found


def _left(book: SessionBook) -> list[WaitingCard]:
    """Give the sessions that waited for an answer when their program ended: they ask again where somebody goes on."""
    try:
        rows = page_rows(book, ListFilter(all=True, state=SessionState.WAITING.value)).lines
    except (TreadleError, OSError):  # the column says so
        return []
    return [
        WaitingCard(
            id=f"c-{row.id}-{ASKED}",
            session=row.id,
            title=row.title,
            project=row.project,
            branch=branch_of(Path(row.workspace)),
            kind=ENDED,
            asked="It waited for your answer",
            about="",
            figures=None,
            html=render("asked_before.html", row=row),
            since=row.updated_at,
        )
        for row in rows
        if row.sign == ASKED
    ]


def _keys(kind: AskedKind, html: str) -> Iterator[tuple[str, str]]:
    """Give the keys that answer a card: those of which it has the buttons. What is dangerous has no key for its yes."""
    for key, words, act in _KEYS:
        if f'data-act="{act}"' in html and not (act == "allow" and kind is DANGER):
            yield key, words


def _together(kind: AskedKind, question: Question, words: QuestionWords) -> str:
    """Name the one effect of a call that may be allowed with others of it: never a deletion, the network or a right."""
    if question.copy is not None or words.rights or any(effect.warns for effect in words.effects):
        return ""
    if kind is EDITS:
        return "" if words.title.startswith("Delete") else "edits"
    verbs = {effect.verb for effect in words.effects}
    return verbs.pop() if kind.effect and len(verbs) == 1 and verbs <= _ALIKE else ""


def _about(question: Question, words: QuestionWords) -> str:
    """Give what a row says below the title: the command, the places of an edit beside its figures, or the choices."""
    if question.options and question.kind in (QuestionKind.FOLLOWUP, QuestionKind.SUMMARY):
        return " · ".join([*map(str, question.options), "Something else"])
    if words.figures and not words.text:
        return places_words(question)
    return words.text.partition("\n")[0] or words.counted


ROUTES = (
    PageRoute("/inbox", _show, Reach.SEE),
    PageRoute("/inbox/cards", _list, Reach.SEE),
)
