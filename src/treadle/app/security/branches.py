"""Lines of git that would bring other control files into the working tree, such as AGENTS.md of another branch."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.app.security.confinement import is_control
from treadle.policy.classify import commands_of
from treadle.policy.context import PolicyContext
from treadle.protocol.permissions import Decision, Reason, Verdict
from treadle.protocol.tools import Access, Confinement, Right, RunCommand, SandboxDenial
from treadle.workspace.sandbox import control_files_changed_by

_NAMED = 5


def asked_for_control_files(decision: Decision, accesses: Sequence[Access], context: PolicyContext) -> Decision:
    """Ask before a line would change them; confined it would stop half-way. Runs git, hardened, to look."""
    if decision.confinement is not Confinement.GIT or not context.trusted:
        return decision
    found: dict[str, None] = {}
    for access in accesses:
        if isinstance(access, RunCommand):
            for words in commands_of(access.command, access.cwd, context):
                found |= dict.fromkeys(control_files_changed_by(access.cwd, words, is_held=is_control))
    if not found:
        return decision
    named = ", ".join(list(found)[:_NAMED]) + (" and others" if len(found) > _NAMED else "")
    reason = Reason(rule="control-write", text=f"it would change control files: {named}")
    rights = (SandboxDenial(right=Right.WRITE, target=f"{context.roots[0]}/{path}") for path in found)
    asked = Verdict.REQUIRE_USER_CONFIRMATION if decision.verdict is Verdict.ALLOW else decision.verdict
    return replace(
        decision, verdict=asked, reasons=(reason, *decision.reasons), grants=(*decision.grants, *rights), offers=()
    )
