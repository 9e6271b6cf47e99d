"""set_timer: a note to the model itself, after a time."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolSpec, result_text
from treadle.tools.declarations import SET_TIMER
from treadle.workspace.workspace import Workspace

_MOST_SECONDS = 24 * 3600


class SetTimer(Struct, frozen=True):
    """Sets timers, and ends them."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return SET_TIMER

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the time."""
        seconds: int = arguments["seconds"]
        note: str = arguments.get("note", "").strip()
        if seconds > _MOST_SECONDS:
            raise ToolError(f"A timer has at most {_MOST_SECONDS:,} seconds. Set a shorter one.", invalid=True)
        watchers = self.workspace.watchers
        if watchers is None:
            raise ToolError("Nothing can wake you in this session. Use execute_command with sleep instead.")

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - there is none
            if seconds == 0:
                return result_text(Outcome.OK, f"Timers ended: {watchers.cancel_timers()}.")
            watchers.set_timer(seconds, note)
            ends = "" if watchers.stays() else " Your answer may end this session: wait before you answer."
            said = f"You are sent the note in {seconds:,} s, unless the session ends before.{ends}"
            return result_text(Outcome.OK, said)

        title = f"Set a timer: {seconds:,} s" if seconds else "End all timers"
        return Prepared(accesses=(), preview=Preview(title=title, text=note), run=run)
