"""The screen of everything that waits for a person, over all sessions."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.open_session import Reach
from treadle.door.past import SessionState
from treadle.present.question_words import QuestionStyle, QuestionWords, asked_in_words, is_edit
from treadle.present.words import counted
from treadle.protocol.errors import TreadleError
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import FetchUrl, RunCommand
from treadle.web.book import SessionBook
from treadle.web.item_html import in_milliseconds
from treadle.web.page_keys import Visitor
from treadle.web.page_requests import book_of, page, visitor_of
from treadle.web.rights import PageRoute
from treadle.web.session_rows import ListFilter, page_rows, project_name
from treadle.web.status import ASKED
from treadle.web.templating import render

_KINDS = (
    "Danger",
    "Commands",
    "Edits",
    "Outside the project",
    "Network",
    "Asked by the model",
    "Budget",
    "Others",
    "Program ended",
)
_SIGNS = {"Danger": "flag", "Commands": "term", "Edits": "pencil", "Network": "globe", "Asked by the model": "comment"}
_ALLOW = 'data-act="allow"'
"""What a card has that may be answered with yes from where it is shown."""

_ALIKE = {"runs": "commands that run programs", "writes": "commands that write files", "git": "git commands"}
"""Commands of one effect that may be allowed together."""

_ORDERS = (("", "By kind"), ("session", "By session"), ("oldest", "Oldest first"))


class WaitingCard(Struct, frozen=True, kw_only=True):
    """A question that waits: its row in the list, and its card. `since` is when its session began to wait (ms).

    `step` is the one that asks, 0 where that is not known; `before` are the calls that came before it.

    Those with the same word `together`, none where it is empty, have one effect, and may be allowed together.
    """

    id: str
    session: str
    title: str
    project: str
    kind: str
    sign: str
    asked: str
    about: str
    figures: tuple[int, int] | None
    html: str
    since: int | None = None
    step: int = 0
    before: Sequence[str] = ()
    together: str = ""


async def _show(request: Request) -> Response:
    by = _order(request)
    return await page(request, "inbox.html", by=by, orders=_ORDERS, **await _waiting(request, by))


async def _list(request: Request) -> Response:
    """Give the list and the cards alone, for a page that is open already."""
    return HTMLResponse(render("cards.html", **await _waiting(request, _order(request))))


def _order(request: Request) -> str:
    wanted = request.query_params.get("by", "")
    return wanted if wanted in dict(_ORDERS) else ""


def _titles(book: SessionBook) -> dict[str, str]:
    return {id_: one.session.title or id_ for id_, one in tuple(book.opened.items())}


async def _waiting(request: Request, by: str) -> dict[str, Any]:
    book, who = book_of(request), visitor_of(request)
    titles = await asyncio.to_thread(_titles, book)
    cards = [*_cards(book, who, titles), *await asyncio.to_thread(_left, book)]
    working = sum(one.session.status.turn_active and not one.questions for one in book.opened.values())
    key: Callable[[WaitingCard], str] = {"session": _of_session, "oldest": _of_all}.get(by, _of_kind)
    cards.sort(key=lambda one: _rank(one, by))
    groups = [(name, list(found)) for name, found in groupby(cards, key)]
    alike: dict[str, list[str]] = {}
    for one in cards:
        if one.together:
            alike.setdefault(one.together, []).append(one.id)
    return {
        "cards": cards,
        "groups": groups,
        "alike": [ids for ids in alike.values() if len(ids) > 1],
        "working": working,
        "counted": cards
        and f"{counted(len(cards), 'question')} of {counted(len({one.session for one in cards}), 'session')}",
    }


def _rank(card: WaitingCard, by: str) -> tuple[int, str]:
    match by:
        case "session":
            return 0, card.title
        case "oldest":
            return card.since or 0, ""
        case _:
            return _KINDS.index(card.kind), ""


def _of_kind(card: WaitingCard) -> str:
    return card.kind


def _of_session(card: WaitingCard) -> str:
    return card.title


def _of_all(_: WaitingCard) -> str:
    return "Oldest first"


def _cards(book: SessionBook, who: Visitor, titles: dict[str, str]) -> list[WaitingCard]:
    found = []
    for id_, one in book.opened.items():
        questions = {question.id: question for question in one.questions}
        since = one.content.view.asking
        for question_id, html in one.cards(who):
            question = questions[question_id]
            words = asked_in_words(question, one.roots)
            kind = _kind(question, words)
            found.append(
                WaitingCard(
                    id=f"c-{id_}-{question_id}",
                    session=id_,
                    title=titles.get(id_, id_),
                    project=project_name(str(one.session.workspace)),
                    kind=kind,
                    sign=_SIGNS.get(kind, "alert"),
                    asked=words.title,
                    about=_about(question, words),
                    figures=None if words.text else words.figures,
                    html=html,
                    since=None if since is None else in_milliseconds(since),
                    step=one.content.view.step,
                    before=one.content.last_calls(),
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
            kind=_KINDS[-1],
            sign="alert",
            asked="It waited for your answer",
            about="",
            figures=None,
            html=render("asked_before.html", row=row),
            since=row.updated_at,
        )
        for row in rows
        if row.sign == ASKED
    ]


def _kind(question: Question, words: QuestionWords) -> str:
    """Say of which kind a question is, as the list groups them."""
    if words.style is QuestionStyle.DANGER:
        return "Danger"
    match question.kind:
        case QuestionKind.FOLLOWUP | QuestionKind.GUIDANCE | QuestionKind.SUMMARY:
            return "Asked by the model"
        case QuestionKind.BUDGET:
            return "Budget"
        case QuestionKind.ELICITATION:
            return "Others"
        case QuestionKind.PERMISSION:
            pass
    if any(isinstance(access, RunCommand) for access in question.accesses):
        return "Commands"
    if any(isinstance(access, FetchUrl) for access in question.accesses):
        return "Network"
    if "outside this project" in words.title:
        return "Outside the project"
    return "Edits" if is_edit(question) else "Others"


def _together(kind: str, question: Question, words: QuestionWords) -> str:
    """Name the one effect of a call that may be allowed with others of it: never a deletion, the network or a right."""
    if question.copy is not None or words.rights or any(effect.warns for effect in words.effects):
        return ""
    if kind == "Edits":
        return "" if words.title.startswith("Delete") else "edits"
    verbs = {effect.verb for effect in words.effects}
    return _ALIKE.get(verbs.pop(), "") if kind == "Commands" and len(verbs) == 1 else ""


def _about(question: Question, words: QuestionWords) -> str:
    """Give what a row says below the title: the command, the figures of an edit, or the choices."""
    if question.options and question.kind in (QuestionKind.FOLLOWUP, QuestionKind.SUMMARY):
        return " · ".join(str(option) for option in question.options)
    return words.text.partition("\n")[0] or ("" if words.figures else words.counted)


ROUTES = (
    PageRoute("/inbox", _show, Reach.SEE),
    PageRoute("/inbox/cards", _list, Reach.SEE),
)
