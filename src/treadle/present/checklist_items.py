"""The task's checklist as things to do."""

from msgspec import Struct

from treadle.context.focus import checklist_summary, parse_checklist


class Todo(Struct, frozen=True):
    """One thing to do; `depth` 1 is below the one of depth 0 before it."""

    text: str
    done: bool
    depth: int


def todo_of(markdown: str) -> tuple[Todo, ...]:
    """Read a checklist."""
    return tuple(Todo(item.text, item.done, item.depth) for item in parse_checklist(markdown))


def summary_of(markdown: str) -> str:
    """Say how far a checklist is, and what comes next."""
    return checklist_summary(parse_checklist(markdown))
