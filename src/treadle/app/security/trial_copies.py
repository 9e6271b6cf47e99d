"""The throw-away copy of a session's last command: what was changed in it waits here until somebody has decided."""

from dataclasses import dataclass
from pathlib import Path

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, CopyChanges, Outcome
from treadle.workspace.copies import (
    Copy,
    Hold,
    apply_changes,
    make_copy,
    read_changes,
    throw_away,
)
from treadle.workspace.files.owners import Owner
from treadle.workspace.sandbox import Profile, SandboxState


@dataclass(slots=True)
class Copies:
    """At most one copy at a time: the next one throws the last one away.

    `waiting` is the digest of its changes and what may not change, once the command has ended.
    """

    last: Copy | None = None
    waiting: tuple[str, Hold] | None = None

    def make(self, profile: Profile, state: SandboxState, data: Path, holder: Owner | None = None) -> Copy:
        """Prepare a copy for the next command, in the namespaces of a holder. Raises `ToolError` or `OSError`."""
        self.throw_away()
        shown = {path: Path(file).read_bytes() for path, file in profile.instead}
        self.last = make_copy(profile, state, data, shown=shown, holder=holder)
        return self.last

    def read(self, hold: Hold, output: str, *, failed: bool) -> CopyChanges:
        """Say what the command changed; what waits for an answer is kept."""
        copy = self.last
        if copy is None:
            return CopyChanges()
        found = read_changes(copy, hold, output=output, failed=failed)
        if found.changes or found.outputs:
            self.waiting = (found.digest, hold)
        else:
            self.throw_away()
        return found

    def keep(self, digest: str) -> CallResult:
        """Apply the changes that a digest names, or nothing. Raises `ToolError`."""
        if self.last is None or self.waiting is None or self.waiting[0] != digest:
            raise ToolError("Nothing was applied: the changes are not there any more. Make the call again.")
        changes = apply_changes(self.last, digest, self.waiting[1])
        self.throw_away()
        return CallResult(outcome=Outcome.OK, changes=changes)

    def throw_away(self) -> None:
        """Forget the last copy."""
        self.waiting = None
        if self.last is not None:
            throw_away(self.last)
            self.last = None
