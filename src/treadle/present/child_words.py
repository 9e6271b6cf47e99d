"""What a subagent does and how it ended, in a line."""

from treadle.present.words import spent
from treadle.protocol.children import LEFT_WITH_ORIGINAL, ChildOutcome
from treadle.protocol.notifications import BY_HOOK, ChildChanged

_TASK = 60
_ENDED = {
    ChildOutcome.DONE: "done",
    ChildOutcome.LIMIT: "stopped:",
    ChildOutcome.REFUSED: "refused:",
    ChildOutcome.FAILED: "failed:",
    ChildOutcome.INTERRUPTED: "stopped",
}


def child_line(child: ChildChanged) -> str:
    """Say where a subagent is: `explore, "Find the callers of f": reads src/f.py, 3 steps, $0.01`."""
    task = " ".join(child.task.split())
    task = task if len(task) <= _TASK else f"{task[: _TASK - 1]}…"
    facts = [_where(child)]
    if child.steps:
        facts.append("1 step" if child.steps == 1 else f"{child.steps} steps")
        facts.append(spent(child.usage, child.cost))
    if child.files:
        facts.append("1 file changed" if child.files == 1 else f"{child.files} files changed")
    if child.kept:
        facts.append(f"{child.kept}: treadle copies apply {child.session_id}")
    return f'{child.agent}, "{task}": {", ".join(facts)}'


def child_parts(child: ChildChanged) -> tuple[str, str, str, str, str]:
    """Give the columns of a subagent in a list: its agent, its task, what it does, its steps, and what it cost."""
    steps = "" if not child.steps else "1 step" if child.steps == 1 else f"{child.steps} steps"
    money = spent(child.usage, child.cost) if child.steps else ""
    return child.agent, " ".join(child.task.split()), _where(child), steps, money


def _where(child: ChildChanged) -> str:
    if child.outcome is None:
        return child.doing or "begins"
    if child.why == LEFT_WITH_ORIGINAL:
        return child.why
    words = _ENDED[child.outcome]
    if child.why.startswith(BY_HOOK):
        return f"stopped by {child.why}"
    return f"{words} {child.why or 'without a reason'}" if words.endswith(":") else words


def child_note(child: ChildChanged) -> str:
    """Say how a subagent ended."""
    return f"Subagent {child_line(child)}"
