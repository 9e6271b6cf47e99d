"""Requests beyond the protocol, for clients that know this agent: the inbox, and the checkpoints of a session."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from treadle.acp.shapes import AcpValue
from treadle.door.history import go_back
from treadle.door.opening import session_log
from treadle.door.past import SessionState, listed_sessions, listed_words
from treadle.door.review import changed_since, listed_checkpoints, opened_checkpoints, restore_preview
from treadle.present.escape import printable
from treadle.present.spending_words import Spending
from treadle.protocol.checkpoints import Restore
from treadle.protocol.events import Op

_MOST_LISTED = 200
_MOST_DIFF = 1_000_000
"""Characters of a diff that are sent."""


class InboxRequest(AcpValue, kw_only=True):
    """The sessions of all folders are wanted, those first that wait for a person."""


class CheckpointRequest(AcpValue, kw_only=True):
    """The checkpoints of a session are wanted; with `since`, what changed since that one."""

    session_id: str
    since: int = 0


class RestoreRequest(AcpValue, kw_only=True):
    """Files, the conversation or both are to be as at a checkpoint; with `preview` the client only wants to see how.

    With `seen`, the number of an answer or a preview, nothing is restored where the session has worked since that.
    """

    session_id: str
    checkpoint: int
    files: bool = True
    conversation: bool = False
    preview: bool = False
    seen: int = 0

    @property
    def wish(self) -> Restore:
        """The op for it."""
        return Restore(checkpoint=self.checkpoint, files=self.files, conversation=self.conversation)


def inbox_answer() -> dict[str, Any]:
    """List the sessions: those that wait, those that work, then the others, each kind with the last used first."""
    order = {SessionState.WAITING: 0, SessionState.WORKING: 1}
    rows = sorted(listed_sessions(None), key=lambda row: order.get(row.state, 2))
    sessions = [
        {
            "sessionId": row.id,
            "cwd": row.workspace,
            "title": printable(row.title),
            "state": row.state.value,
            "words": listed_words(row),
            "open": row.open,
            "updatedAt": _iso(row.updated_at),
            "added": row.added,
            "removed": row.removed,
            **_cost(row.spending),
        }
        for row in rows[:_MOST_LISTED]
    ]
    return {"sessions": sessions, "waiting": sum(row.state is SessionState.WAITING for row in rows)}


def _cost(spending: Spending) -> dict[str, Any]:
    """Give what is known of a cost in US dollars; nothing where a part of it is unknown."""
    return {} if spending.unpriced else {"cost": {"amount": spending.total, "currency": "USD"}}


def checkpoints_answer(session_id: str, since: int) -> dict[str, Any]:
    """List the checkpoints, oldest first, and the changes since one of them. Raises `TreadleError`."""
    with session_log(session_id) as (row, store):
        checkpoints = [
            {
                "number": one.n,
                "step": one.step,
                "at": _iso(one.at),
                "why": one.why,
                "files": one.files,
                "added": one.added,
                "removed": one.removed,
                "notCovered": list(map(printable, one.not_covered)),
            }
            for one in listed_checkpoints(store, row.id)
        ]
        answer: dict[str, Any] = {"checkpoints": checkpoints}
        if since:
            found = changed_since(store, row, since)
            answer["changes"] = [{"path": one.path, "change": one.change} for one in found.changes]
            answer["diff"] = found.diff[:_MOST_DIFF]
        return answer


def preview_answer(session_id: str, wanted: RestoreRequest) -> dict[str, Any]:
    """Say what restoring would do to each path and to the conversation. Raises `TreadleError`."""
    with session_log(session_id) as (row, store):
        kept = opened_checkpoints(store, row)
        try:
            found = restore_preview(store, row, kept, wanted.wish)
        finally:
            kept.close()
        seen = row.events
    paths = [{"what": one.what, "path": one.path, "why": one.why} for one in found.paths]
    return {"paths": paths, "turnsLeaving": found.leaving, "turns": found.turns, "seen": seen}


async def restored_answer(
    session_id: str, wanted: RestoreRequest, post: Callable[[Op], Awaitable[None]] | None
) -> dict[str, Any]:
    """Restore, and say what was; `undo` is the checkpoint that takes it back, `seen` the number that goes with it.

    Raises `TreadleError`.
    """
    went = await go_back(session_id, wanted.wish, post, seen=wanted.seen)
    result = went.result
    return {
        "written": list(result.written),
        "removed": list(result.removed),
        "conflicts": [{"path": one.path, "why": one.why} for one in result.conflicts],
        "error": result.error,
        "undo": went.undo.checkpoint,
        "seen": went.seen,
    }


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat()
