"""The task's checklist: Markdown that the model and the user both write, merged so that neither loses a word."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.patterns import regex
from treadle.protocol.tools import ToolSpec

PROGRESS = "task_progress"
"""The parameter by which any call may carry the checklist."""

_PROGRESS_SCHEMA = {"type": "string"}

REMIND_AFTER = 6
"""Model calls without an update after which the model is reminded, and again after as many."""

_ITEM = regex(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[ xX]?)\](?:[ \t]+(?P<text>.*))?")
_INDENT = 2
_DEEPEST = 5
_MOST_ITEMS = 100
_LONGEST = 300


class FocusItem(Struct, frozen=True):
    """One thing to do; `depth` 1 is below the item of depth 0 before it."""

    text: str
    done: bool = False
    depth: int = 0


Checklist: TypeAlias = tuple[FocusItem, ...]
_Key: TypeAlias = tuple[str, int]


def parse_checklist(markdown: str) -> Checklist:
    """Read the items, written `- [ ] text` or `- [x] text`; other lines are no part of the list."""
    return tuple(item for line in markdown.splitlines() if (item := _read(line)))[:_MOST_ITEMS]


def _read(line: str) -> FocusItem | None:
    found = _ITEM.fullmatch(line.rstrip())
    text = " ".join((found["text"] or "").split())[:_LONGEST].rstrip() if found else ""
    if found is None or not text:
        return None
    depth = len(found["indent"].expandtabs(4)) // _INDENT
    return FocusItem(text, done=found["mark"] in ("x", "X"), depth=min(depth, _DEEPEST))


def render_checklist(checklist: Checklist) -> str:
    """Write the items as Markdown, one to a line."""
    return "\n".join(f"{' ' * (_INDENT * item.depth)}- [{'x' if item.done else ' '}] {item.text}" for item in checklist)


def rewrite(markdown: str, checklist: Checklist) -> str:
    """Put the list in the place of the one in a text, and leave every other line of the text as it is."""
    lines = markdown.splitlines()
    items = [number for number, line in enumerate(lines) if _read(line)]
    first = items[0] if items else len(lines)
    kept = [line for number, line in enumerate(lines) if number not in set(items)]
    new = render_checklist(checklist).splitlines()
    return "".join(f"{line}\n" for line in (*kept[:first], *new, *kept[first:]))


def merge_checklists(base: Checklist, model: Checklist, user: Checklist) -> Checklist:
    """Join two changes of the list `base`; where they contradict each other the user's stands.

    The order is the model's; what the user added follows the item that it followed in the user's list.
    """
    if model == base:
        return user
    before, wanted = dict(_keyed(base)), dict(_keyed(user))
    merged = {
        key: _join(before.get(key), item, wanted.get(key))
        for key, item in _keyed(model)
        if key in wanted or key not in before
    }
    order = list(merged)
    place = 0
    for key, item in wanted.items():
        if key in merged:
            place = order.index(key) + 1
        elif key not in before:
            merged[key] = item
            order.insert(place, key)
            place += 1
    return tuple(merged[key] for key in order)[:_MOST_ITEMS]


def _keyed(checklist: Checklist) -> Iterator[tuple[_Key, FocusItem]]:
    """Name each item by its text, whatever its case, and by how many such came before it."""
    seen: dict[str, int] = {}
    for item in checklist:
        text = item.text.casefold()
        seen[text] = seen.get(text, -1) + 1
        yield (text, seen[text]), item


def _join(before: FocusItem | None, model: FocusItem, user: FocusItem | None) -> FocusItem:
    if user is None or user == before:
        return model
    if before is None:
        return replace(user, done=model.done or user.done)
    return replace(user, done=user.done if user.done != before.done else model.done)


def checklist_summary(checklist: Checklist) -> str:
    """Say how far it is, and what comes next; empty without a list."""
    if not checklist:
        return ""
    done = sum(item.done for item in checklist)
    following = next((item.text for item in checklist if not item.done), "")
    return f"{done}/{len(checklist)}" + (f" · {following}" if following else "")


def reminder(checklist: Checklist, requests: int) -> str:
    """Give the note for the model after so many requests since the last update; empty when none is due."""
    if not checklist or requests == 0 or requests % REMIND_AFTER:
        return ""
    if all(item.done for item in checklist):
        return ""
    return (
        "The task's checklist was not updated for a while. It now says:\n"
        f"{render_checklist(checklist)}\n"
        "Give the whole list, with finished items marked `[x]`, as `task_progress` with your next call."
    )


def edited(before: Checklist, now: Checklist) -> str:
    """Give the note that tells the model of the user's own change to the list; empty when there is none."""
    if before == now:
        return ""
    return f"The user changed the task's checklist. It now says:\n{render_checklist(now) or '(empty)'}"


def with_progress(spec: ToolSpec) -> ToolSpec:
    """Let the calls of a tool carry the checklist, unless the tool has such a parameter of its own."""
    properties = spec.parameters.get("properties", {})
    if PROGRESS in properties:
        return spec
    parameters = {**spec.parameters, "properties": {**properties, PROGRESS: _PROGRESS_SCHEMA}}
    return msgspec.structs.replace(spec, parameters=parameters)


def has_progress(spec: ToolSpec) -> bool:
    """Whether a call's checklist is the loop's, not an argument of the tool."""
    return spec.parameters.get("properties", {}).get(PROGRESS) is _PROGRESS_SCHEMA
