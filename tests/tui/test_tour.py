"""A tour of work, and a window that changes its size all the time, in a real terminal: what stays in the scrollback."""

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tui.test_tmux import Tmux, pytestmark, tmux
from tests.workspace.copies.copied import skip_without_copies

__all__ = ["pytestmark", "tmux"]

MOST_LINES = 46
CART = """class Cart:
    def __init__(self):
        self.items = []

    def total(self):
        total = 0.0
        for item in self.items:
            total += item.price
        return round(total, 2)
"""
EDIT = """------- SEARCH
            total += item.price
=======
            if item.count < 0:
                raise ValueError(f"{item.name}: the count must not be negative")
            total += item.price * item.count
+++++++ REPLACE
"""


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"type": "call", "name": name, "arguments": arguments}


def says(*items: Mapping[str, Any]) -> dict[str, Any]:
    return {"items": list(items)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def progress(done: int) -> str:
    todo = ("Look at the cart", "Fix the total", "Run the tests")
    return "".join(f"- [{'x' if number < done else ' '}] {one}\n" for number, one in enumerate(todo))


TOUR = (
    says(
        {"type": "thinking", "text": "The total is wrong.\nI look at the cart."},
        text("I look at how the total is computed.\n"),
        call("read_file", path="shop/cart.py", task_progress=progress(0)),
    ),
    says(call("search_files", path=".", regex="def total")),
    says(
        text("`total()` ignores the count.\n"),
        call("replace_in_file", path="shop/cart.py", diff=EDIT, task_progress=progress(1)),
    ),
    says(
        call("execute_command", command="python3 -c 'print(\"Ran 3 tests\")' | tee report", task_progress=progress(2))
    ),
    says(call("execute_command", command="ls nosuchdir")),
    says(text("Now I write the summary. "), {"type": "wait", "seconds": 1000}),
    says(call("attempt_completion", result="The total counts every item now, and the changelog says so.")),
)


def start(tmux: Tmux, folder: Path, turns: tuple[dict[str, Any], ...], *, size: tuple[int, int]) -> None:
    (folder / "ws" / "shop").mkdir(parents=True)
    (folder / "ws" / "shop" / "cart.py").write_text(CART)
    (folder / "script.json").write_text(json.dumps({"turns": turns}))
    command = f"{sys.executable} -m treadle -C ws --model scripted/script.json; sleep 1000"
    columns, rows = map(str, size)
    tmux.run("new-session", "-d", "-c", str(folder), "-x", columns, "-y", rows, "-s", "t", command)
    tmux.until("? for keys")


def test_the_tour_of_work_leaves_few_lines(tmux: Tmux, tmp_path: Path) -> None:
    skip_without_copies(tmp_path)
    start(tmux, tmp_path, TOUR, size=(80, 24))
    tmux.keys("Fix the total of the cart, it ignores the count", "Enter")
    for question, yes in (("Apply this edit to shop/cart.py?", "❯ Yes"), ("Keep these changes?", "❯ Apply")):
        tmux.until(question, yes)
        time.sleep(1.2)
        tmux.keys("Enter")
    tmux.until("✗ Run ls nosuchdir", "Now I write the summary.")
    tmux.keys("also update the changelog", "Enter")
    tmux.until("next  also update the changelog")
    tmux.keys("Escape")
    tmux.until("■ Stopped", "held  also update the changelog")
    tmux.keys("Enter")
    tmux.until("■ Done")
    shown = tmux.shown
    lines = shown[: shown.index("\n", shown.index("■ Done"))].strip("\n").split("\n")
    print(f"\n{len(lines)} lines of scrollback\n{shown}")
    for once in ("✓ Read", "✓ Search", "✓ Edit shop/cart.py", "✓ Run python3", "✗ Run ls", "■ Stopped", "■ Done"):
        assert shown.count(once) == 1, shown
    assert "Apply this edit" not in shown
    assert "Keep these changes?" not in shown
    assert len(lines) <= MOST_LINES, shown


WORDS = ("The", "total", "ignores", "the", "count", "of", "each", "item,", "so", "it", "is", "wrong", "everywhere.")
LINES = 60


def numbered(begin: int, end: int) -> str:
    """Lines that are found again by their number, some of them longer than a narrow window."""
    return "".join(f"Line {number}. {' '.join(WORDS * (number % 3))}\n\n" for number in range(begin, end))


def streams(before: int) -> tuple[dict[str, Any], ...]:
    """An answer of some seconds, a few words at a time, after so many lines that are there at once."""
    items: list[dict[str, Any]] = [text(numbered(0, before))]
    for number in range(before, LINES):
        for part in numbered(number, number + 1).partition(". "):
            items += [text(part), {"type": "wait", "seconds": 0.08}]
    return (says(*items, call("attempt_completion", result="Done with it.")),)


def asks(before: int) -> tuple[dict[str, Any], ...]:
    """So many lines, and a question with lines that are wrapped on narrow screens."""
    line = "python3 -c 'print(1)' && rm -rf build && echo a long command line that wraps at forty columns"
    return (
        says(text(numbered(0, before)), call("execute_command", command=line)),
        says(text(numbered(before, LINES)), call("attempt_completion", result="Done with it.")),
    )


TURNS = {"streams": (streams, "esc to stop"), "asks": (asks, "ctrl-o details")}


def check_sizes(tmux: Tmux, folder: Path, kind: str, before: int, pauses: Iterator[float]) -> None:
    """Change the size of the window while something is drawn: in the end every line is there, once."""
    make, begun = TURNS[kind]
    tmux.ask_first()
    start(tmux, folder, make(before), size=(90, 30))
    tmux.keys("go", "Enter")
    tmux.until(f"Line {before - 1}.", begun)
    jitter = random.Random(7)
    for pause in pauses:
        tmux.run("resize-window", "-t", "t", "-x", str(jitter.randint(40, 120)), "-y", str(jitter.randint(16, 40)))
        time.sleep(pause)
    tmux.run("resize-window", "-t", "t", "-x", "80", "-y", "24")
    if kind == "asks":
        tmux.until("❯ Yes", "Run this command?")
        time.sleep(1.5)
        tmux.keys("Enter")
    tmux.until("■ Done", "? for keys", "─ ask ─")
    shown = tmux.shown
    found = Counter(int(number) for number in re.findall(r"Line (\d+)\.", shown))
    assert not set(range(LINES)) - set(found), f"lost: {set(range(LINES)) - set(found)}\n{shown}"
    assert shown.count("■ Done") == 1, shown
    if before >= LINES // 2:  # of a screen that is not full, tmux pushes what it has wrapped into its history itself
        # A terminal that wraps while it reads a row may show that row twice; none may be lost for it.
        twice = [one for one in found if found[one] > 1]
        assert len(twice) <= 1, f"twice: {twice}\n{shown}"
        counted = {text: shown.count(text) for text in ("─ ask ─", "? for keys", "esc to stop", "this command?", "❯")}
        assert counted == {"─ ask ─": 1, "? for keys": 1, "esc to stop": 0, "this command?": 0, "❯": 0}, shown


@pytest.mark.parametrize("kind", TURNS)
def test_a_window_that_changes_its_size_loses_nothing_and_leaves_no_ghost(
    tmux: Tmux, tmp_path: Path, kind: str
) -> None:
    jitter = random.Random(7)
    check_sizes(tmux, tmp_path, kind, LINES // 2, (jitter.choice((0.0, 0.02, 0.1, 0.2)) for _ in range(30)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("before", [2, LINES // 2])
@pytest.mark.parametrize("kind", TURNS)
def test_a_window_that_changes_its_size_slowly_loses_nothing(
    tmux: Tmux, tmp_path: Path, kind: str, before: int, seed: int
) -> None:
    jitter = random.Random(seed)
    check_sizes(tmux, tmp_path, kind, before, (jitter.uniform(0.05, 1.5) for _ in range(14)))
