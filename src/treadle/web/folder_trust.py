"""The question whether a folder is trusted, before a session of it is opened on the page."""

import asyncio
from pathlib import Path
from typing import Any

from treadle.app.security.asked_trust import asked_trust, keep_trust_answer
from treadle.app.security.trusting import SessionTrust
from treadle.web.book import SessionBook

_ANSWERS = {
    "later": "Not now",
    "always": "Yes, trust it",
    "once": "Yes, until Treadle ends",
    "never": "Never for this folder",
}


async def folder_trust(book: SessionBook, workspace: Path, said: str, seen: str) -> SessionTrust | dict[str, Any]:
    """Give how a folder stands, after what was `said` of it; where that is to be asked, what the question shows.

    `seen` names what the question showed: a folder that changed meanwhile is asked about again. Raises `TreadleError`.
    """
    return await asyncio.to_thread(_settle, book, workspace, said, seen)


def _settle(book: SessionBook, workspace: Path, said: str, seen: str) -> SessionTrust | dict[str, Any]:
    trust = book.trust(workspace)
    if not trust.asks:
        return trust
    asked = asked_trust(workspace)
    if said not in _ANSWERS or seen != asked.seen:
        shown = {"title": asked.title, "about": asked.about, "lines": asked.lines, "seen": asked.seen}
        return {**shown, "answers": list(_ANSWERS.items())}
    if said == "later":
        return trust
    if said == "once":
        book.trust_once(workspace)
    keep_trust_answer(asked, said)
    return book.trust(workspace)
