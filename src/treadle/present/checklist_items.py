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


def open_items(markdown: str) -> tuple[int, int]:
    """Count the things that are not done, and all."""
    found = todo_of(markdown)
    return sum(not one.done for one in found), len(found)


def open_words(markdown: str) -> str:
    """Say how many things are not done; empty where all are."""
    left, every = open_items(markdown)
    return f"{left} of {every} to-do items {'is' if left == 1 else 'are'} open" if left else ""


def summary_of(markdown: str) -> str:
    """Say how far a checklist is, and what comes next."""
    return checklist_summary(parse_checklist(markdown))
