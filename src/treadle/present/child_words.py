"""What a subagent does and how it ended, in a line."""

from treadle.present.escape import printable
from treadle.present.words import clip_text, spent
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
    facts = [_where(child)]
    if child.steps:
        facts.append("1 step" if child.steps == 1 else f"{child.steps} steps")
        facts.append(spent(child.usage, child.cost))
    if child.files:
        facts.append("1 file changed" if child.files == 1 else f"{child.files} files changed")
    if child.kept:
        facts.append(f"{child.kept}: treadle copies apply {child.session_id}")
    return f'{child.agent}, "{task_words(child.task)}": {", ".join(facts)}'


def task_words(task: str) -> str:
    """Name a task in a few words."""
    return clip_text(task, _TASK)


def asker_words(agent: str, task: str) -> str:
    """Say which subagent asks: several may have the same agent."""
    named = f", “{task_words(task)}”" if task else ""
    return printable(f"From a subagent: {agent}{named}.")


def role_words(agent: str, *, in_copy: bool, reads: bool) -> str:
    """Say which agent it is, and what it may do: write in a copy of the folder, or only read."""
    may = "writes in a copy" if in_copy else "only reads" if reads else ""
    return ", ".join(filter(None, (agent, may)))


def child_parts(child: ChildChanged) -> tuple[str, str, str, str, str]:
    """Give the columns of a subagent in a list: its agent, its task, what it does, its steps, and what it cost."""
    steps = "" if not child.steps else "1 step" if child.steps == 1 else f"{child.steps} steps"
    money = spent(child.usage, child.cost) if child.steps else ""
    return child.agent, " ".join(child.task.split()), _where(child), steps, money


def _where(child: ChildChanged) -> str:
    if child.outcome is None:
        return doing_words(child)
    if child.why == LEFT_WITH_ORIGINAL:
        return child.why
    words = _ENDED[child.outcome]
    if child.why.startswith(BY_HOOK):
        return f"stopped by {child.why}"
    return f"{words} {child.why or 'without a reason'}" if words.endswith(":") else words


def doing_words(child: ChildChanged) -> str:
    """Say what a subagent does that has not ended."""
    return child.doing or ("continues" if child.steps else "begins")


def child_note(child: ChildChanged) -> str:
    """Say how a subagent ended."""
    return f"Subagent {child_line(child)}"
