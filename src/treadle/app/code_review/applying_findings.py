"""Applying the change of a finding: an edit of the session, judged, logged and undone like any other."""

from collections.abc import AsyncGenerator, Callable

import msgspec
from msgspec import Struct

from treadle.app.code_review.finding_forms import ReviewFinding
from treadle.app.compose import Opening, open_session
from treadle.app.models.model_choice import OwnModel
from treadle.app.models.model_notes import FINDING
from treadle.app.session.shared.turn_asking import SessionClient
from treadle.present.words import plain
from treadle.protocol.events import SetMode, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import (
    ModelRequest,
    ModelSpec,
    Prices,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
)
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import CallResult, FileChange, Outcome
from treadle.protocol.usage import Usage
from treadle.tools.declarations import REPLACE_IN_FILE

_SPEC = ModelSpec(provider="scripted", name=FINDING, context_window=1_000_000, prices=Prices(input=0.0, output=0.0))
_APPLY = Source(kind="headless", id="review")


class AppliedFinding(Struct, frozen=True, kw_only=True):
    """What came of it: the lines that changed, or the `problem` that nothing was changed for."""

    session: str
    changes: tuple[FileChange, ...] = ()
    problem: str = ""


class _OneEdit:
    """A model that makes one call, and says so."""

    def __init__(self, finding: ReviewFinding) -> None:
        self._finding = finding
        self._asked = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:  # noqa: ARG002 - the port's shape
        """Give the call, then the end."""
        if self._asked:
            yield StreamText(text="This is the change of the finding.")
            yield StreamStop(reason=ReplyStop.END_TURN, usage=Usage())
            return
        self._asked = True
        arguments = {"path": self._finding.file, "diff": self._finding.change}
        yield StreamCallStart(index=0, name=REPLACE_IN_FILE.name, wire_id="finding")
        yield StreamCallArguments(index=0, text=msgspec.json.encode(arguments).decode())
        yield StreamCallDone(index=0)
        yield StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage())

    async def close(self) -> None:
        """Nothing is held."""


async def apply_finding(finding: ReviewFinding, opening: Callable[[], Opening]) -> AppliedFinding:
    """Apply the change of a finding in the session that `opening` goes on with; `/undo` there takes it back.

    It is an edit in mode edits, and what that asks for is denied; mode and model of the session stay as they were.
    Raises `TreadleError`.
    """
    own = OwnModel(spec=_SPEC, provider=_OneEdit(finding))
    live = await open_session(msgspec.structs.replace(opening(), models=(own,)))
    results: list[CallResult] = []
    async with SessionClient(live, _APPLY) as client:
        before = live.status
        await client.post(SetMode(mode=Mode.EDITS))
        await client.post(live.choose(_SPEC.ref))
        try:
            run = await client.ask((Text(text="Apply the change that a review suggests."),), followed=True)
            async for notification in run:
                if isinstance(notification, CallChanged) and notification.status is CallStatus.FINISHED:
                    results += [] if notification.result is None else [notification.result]
        finally:
            await client.post(SetMode(mode=before.mode))
            await client.post(live.choose(before.model, before.thinking))
    if results and results[0].outcome is Outcome.OK:
        return AppliedFinding(session=live.id, changes=results[0].changes)
    said = plain(results[0].content) if results else "The edit did not run."
    return AppliedFinding(session=live.id, problem=said.strip().split("\n", 1)[0])
