"""The task's checklist as Treadle 0.1.0 read, joined and wrote it. Frozen."""

import re

Item1 = tuple[str, bool, int]
"""Its text, whether it is done, and its depth."""

_Key = tuple[str, int]

_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[ xX]?)\](?:[ \t]+(?P<text>.*))?")


def parse_1(markdown: str) -> list[Item1]:
    """Read the items."""
    return [item for line in markdown.splitlines() if (item := _read(line))][:100]


def _read(line: str) -> Item1 | None:
    found = _ITEM.fullmatch(line.rstrip())
    text = " ".join((found["text"] or "").split())[:300].rstrip() if found else ""
    if found is None or not text:
        return None
    return text, found["mark"] in ("x", "X"), min(len(found["indent"].expandtabs(4)) // 2, 5)


def render_1(items: list[Item1]) -> str:
    """Write the items."""
    return "\n".join(f"{'  ' * depth}- [{'x' if done else ' '}] {text}" for text, done, depth in items)


def merge_1(base: list[Item1], model: list[Item1], user: list[Item1]) -> list[Item1]:
    """Join two changes of the list `base`; where they contradict each other the user's stays."""
    if model == base:
        return user
    before, wanted = _keyed(base), _keyed(user)
    merged = {
        key: _join(before.get(key), item, wanted.get(key))
        for key, item in _keyed(model).items()
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
    return [merged[key] for key in order][:100]


def _keyed(items: list[Item1]) -> dict[_Key, Item1]:
    keyed: dict[_Key, Item1] = {}
    seen: dict[str, int] = {}
    for item in items:
        text = item[0].casefold()
        seen[text] = seen.get(text, -1) + 1
        keyed[text, seen[text]] = item
    return keyed


def _join(before: Item1 | None, model: Item1, user: Item1 | None) -> Item1:
    if user is None or user == before:
        return model
    text, done, depth = user
    if before is None:
        return text, model[1] or done, depth
    return text, done if done != before[1] else model[1], depth


def reminder_1(items: list[Item1], requests: int) -> str:
    """Give the note for the model when one is due."""
    if not items or requests % 6 or all(done for _, done, _ in items):
        return ""
    return (
        "The task's checklist was not updated for a while. It now says:\n"
        f"{render_1(items)}\n"
        "Give the whole list, with finished items marked `[x]`, as `task_progress` with your next call."
    )


def edited_1(before: list[Item1], now: list[Item1]) -> str:
    """Give the note of the user's own change."""
    return "" if before == now else f"The user changed the task's checklist. It now says:\n{render_1(now) or '(empty)'}"
