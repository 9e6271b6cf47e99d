"""What the model works under, in a few short lines: who is there, what runs without asking, how many steps it has."""

from collections.abc import Collection, Sequence

from treadle.protocol.permissions import Mode, Situation
from treadle.workspace.names import shown_name

_NAMED = 10
_NOBODY = "Nobody is here: questions get no answer, and what needs approval is denied."
_MODES = {
    Mode.PLAN: (
        "Nothing may be changed; commands run in a throw-away copy. Explore, then give your plan with "
        "plan_mode_respond."
    ),
    Mode.ASK: (
        "Reading is allowed. Other commands run in a throw-away copy; keeping their changes, edits and the network "
        "need approval."
    ),
    Mode.EDITS: (
        "Reading, edits and plain file commands are allowed. Others run in a throw-away copy; keeping changes and "
        "the network need approval."
    ),
    Mode.AUTO: (
        "Edits and commands are allowed. Commands write here, in $TMPDIR and to git; hosts need approval when they "
        "connect."
    ),
    Mode.FULL: ("All is allowed, but destroying data, reading secrets and changing control files need approval."),
}


_UNTRUSTED = {
    Mode.PLAN: "This folder is not trusted (--trust): nothing may be changed, and only commands that read run.",
    Mode.ASK: "This folder is not trusted (--trust): commands that only read run; all else needs approval.",
    **dict.fromkeys(
        (Mode.EDITS, Mode.AUTO),
        "This folder is not trusted (--trust): edits and commands that only read are allowed; others need approval.",
    ),
}


def situation_lines(
    situation: Situation, *, first: bool, approved: Collection[str] = (), trusted: bool = True
) -> list[str]:
    """Say what follows from a situation; `approved` names classes of risk that the user lets run beyond the mode.

    Where the folder is not `trusted`, its programs do not run by themselves.
    """
    lines = [] if situation.user_present else [_NOBODY]
    if situation.user_present and not first:
        lines.append("The user is here and can answer.")
    said = _MODES[situation.mode] if trusted else _UNTRUSTED.get(situation.mode, _MODES[situation.mode])
    lines.append(f"Mode: {situation.mode}. {said}")
    if approved and situation.mode not in (Mode.PLAN, Mode.FULL):
        lines.append(f"Also allowed: {', '.join(sorted(approved))}.")
    if situation.max_steps is not None:
        lines.append(f"Steps: at most {situation.max_steps}.")
    return lines


def repository_line(branch: str, changed: Sequence[str]) -> str:
    """Say which branch is checked out and which files differ from it; `changed` are their names."""
    if not changed:
        return f"Git: {branch}, no changes"
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    files = "1 changed file" if len(changed) == 1 else f"{len(changed)} changed files"
    return f"Git: {branch}, {files}: {', '.join(map(shown_name, changed[:_NAMED]))}{more}"
