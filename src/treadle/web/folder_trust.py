"""The question whether a folder is trusted, before a session of it is opened on the page."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

from treadle.app.security.trusted_rules import allow_lines
from treadle.app.security.trusting import SessionTrust, shown_path, trust_lines, trust_store, whole_trust
from treadle.web.book import SessionBook

_CHOICES = ("always", "once", "later", "never")


async def folder_trust(book: SessionBook, workspace: Path, said: str, seen: str) -> SessionTrust | dict[str, Any]:
    """Give how a folder stands, after what was `said` of it; where that is to be asked, what the question shows.

    `seen` names what the question showed: a folder that changed meanwhile is asked about again. Raises `TreadleError`.
    """
    return await asyncio.to_thread(_settle, book, workspace, said, seen)


def _settle(book: SessionBook, workspace: Path, said: str, seen: str) -> SessionTrust | dict[str, Any]:
    trust = book.trust(workspace)
    if not trust.asks:
        return trust
    shown = whole_trust(workspace)
    lines = [*trust_lines(shown), *allow_lines(shown)] or ["  It has no rules, settings, servers or hooks."]
    now = uuid.uuid5(uuid.NAMESPACE_OID, "\n".join(lines)).hex
    if said not in _CHOICES or seen != now:
        return {"folder": shown_path(str(workspace)), "lines": lines, "seen": now, "again": bool(shown.changed)}
    match said:
        case "always":
            trust_store().grant(shown)
        case "never":
            trust_store().refuse(shown)
        case "once":
            book.trust_once(workspace)
        case _:
            return trust
    return book.trust(workspace)
