"""The task's checklist as Treadle 0.1.0 read, joined and wrote it. Frozen."""

import re

Item = tuple[str, bool, int]
"""Its text, whether it is done, and its depth."""

_Key = tuple[str, int]

_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[ xX]?)\](?:[ \t]+(?P<text>.*))?")


def parse(markdown: str) -> list[Item]:
    """Read the items."""
    return [item for line in markdown.splitlines() if (item := _read(line))][:100]


def _read(line: str) -> Item | None:
    found = _ITEM.fullmatch(line.rstrip())
    text = " ".join((found["text"] or "").split())[:300].rstrip() if found else ""
    if found is None or not text:
        return None
    return text, found["mark"] in ("x", "X"), min(len(found["indent"].expandtabs(4)) // 2, 5)


def render(items: list[Item]) -> str:
    """Write the items."""
    return "\n".join(f"{'  ' * depth}- [{'x' if done else ' '}] {text}" for text, done, depth in items)


def merge(base: list[Item], model: list[Item], user: list[Item]) -> list[Item]:
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


def _keyed(items: list[Item]) -> dict[_Key, Item]:
    keyed: dict[_Key, Item] = {}
    seen: dict[str, int] = {}
    for item in items:
        text = item[0].casefold()
        seen[text] = seen.get(text, -1) + 1
        keyed[text, seen[text]] = item
    return keyed


def _join(before: Item | None, model: Item, user: Item | None) -> Item:
    if user is None or user == before:
        return model
    text, done, depth = user
    if before is None:
        return text, model[1] or done, depth
    return text, done if done != before[1] else model[1], depth


def reminder(items: list[Item], requests: int) -> str:
    """Give the note for the model when one is due."""
    if not items or requests % 6 or all(done for _, done, _ in items):
        return ""
    return (
        "The task's checklist was not updated for a while. It now says:\n"
        f"{render(items)}\n"
        "Give the whole list, with finished items marked `[x]`, as `task_progress` with your next call."
    )


def edited(before: list[Item], now: list[Item]) -> str:
    """Give the note of the user's own change."""
    return "" if before == now else f"The user changed the task's checklist. It now says:\n{render(now) or '(empty)'}"
