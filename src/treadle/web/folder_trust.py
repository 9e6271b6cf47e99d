"""The question whether a folder is trusted, before a session of it is opened on the page."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from treadle.door.open_session import Reach
from treadle.door.trust import SessionTrust, asked_trust, keep_trust_answer
from treadle.web.book import SessionBook
from treadle.web.page_keys import Visitor
from treadle.web.rights import may, require

_LATER = "later"
_ANSWERS = {
    _LATER: "Continue without trusting it",
    "always": "Yes, trust it",
    "once": "Yes, until Treadle ends",
    "never": "Never for this folder",
}


class AnsweredTrust(NamedTuple):
    """What was said of a folder; `seen` names what the question showed: one that changed since is asked about again."""

    said: str
    seen: str


def _effect(said: str) -> Reach:
    return Reach.WORK if said == _LATER else Reach.TRUST


async def folder_trust(
    book: SessionBook, workspace: Path, answered: AnsweredTrust, who: Visitor
) -> SessionTrust | dict[str, Any]:
    """Give how a folder stands, after what was answered; where that is to be asked, what the question shows.

    Raises `TreadleError`, and `HTTPException` for an answer that `who` may not give.
    """
    return await asyncio.to_thread(_settle, book, workspace, answered, who)


def _settle(book: SessionBook, workspace: Path, answered: AnsweredTrust, who: Visitor) -> SessionTrust | dict[str, Any]:
    said = answered.said
    trust = book.trust(workspace)
    if not trust.asks:
        return trust
    asked = asked_trust(workspace)
    may_trust = may(who, Reach.TRUST)
    if not said and book.asks_later(workspace, asked.seen, may_trust=may_trust):
        return trust
    if said not in _ANSWERS or answered.seen != asked.seen:
        shown = {"title": asked.title, "about": asked.about, "lines": asked.lines, "seen": asked.seen}
        offered = [(name, words) for name, words in _ANSWERS.items() if may(who, _effect(name))]
        return {**shown, "answers": offered}
    require(who, _effect(said))
    if said == _LATER:
        book.ask_later(workspace, asked.seen, may_trust=may_trust)
        return trust
    if said == "once":
        book.trust_once(workspace)
    keep_trust_answer(asked, said)
    return book.trust(workspace)
