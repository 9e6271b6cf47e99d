"""A session in a real terminal, killed and taken up again, and seen from a second one: the same lines."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.tui.test_tmux import Tmux, pytestmark, tmux

__all__ = ["pytestmark", "tmux"]


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"type": "call", "name": name, "arguments": arguments}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


TURNS: list[list[dict[str, Any]]] = [
    [{"type": "thinking", "text": "What is there?"}, text("I look at it first.\n"), call("read_file", path="a.txt")],
    [text("Now a command that fails.\n"), call("execute_command", command="echo before; echo out; exit 3")],
    [text("Now I write it.\n"), call("write_to_file", path="b.txt", content="a\nb\n")],
    [text("One more edit.\n"), call("write_to_file", path="c.txt", content="secret\n")],
    [text("First block.\n\nSecond block, then slow."), {"type": "wait", "seconds": 1000}],
    [text("I go on.\n\nNow long:\n"), call("execute_command", command="echo begun; sleep 1000")],
    [call("attempt_completion", result="All *done*.")],
]
ENTER = 1.2
"""Seconds after a question has appeared, or a key was pressed, before Enter answers it."""


def program(*arguments: str) -> str:
    return f"{sys.executable} -m treadle -C ws {' '.join(arguments)}; sleep 1000"


def told(shown: str) -> list[str]:
    """The lines of the work, from the prompt to the command that runs, without how long the model thought."""
    lines = shown[shown.index("› do it all") : shown.index("Now long:")].split("\n")
    return ["∴ Thought · ctrl-o" if line.startswith("∴ Thought") else line for line in lines]


def test_a_session_that_is_taken_up_shows_the_lines_that_were_seen(tmux: Tmux, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("hello\n")
    (tmp_path / "script.json").write_text(json.dumps({"turns": [{"items": items} for items in TURNS]}))
    tmux.ask_first()
    tmux.start(program("--model", "scripted/script.json"))
    tmux.keys("do it all", "Enter")
    tmux.until("✗ Run echo before; echo out; exit 3  exit 3", "  before\n  out", "❯ Yes", "ctrl-g edit first")
    tmux.keys("C-g")
    tmux.until("❯ Yes, with your change")
    time.sleep(ENTER)
    tmux.keys("Enter")
    tmux.until("Create c.txt?", "❯ Yes")
    for _ in range(2):
        tmux.keys("Down")
    tmux.until("❯ No, and say what to do instead")
    time.sleep(ENTER)
    tmux.keys("Enter")
    tmux.until("No. Do this instead:")
    tmux.keys("keep it open")
    time.sleep(ENTER)
    tmux.keys("Enter")
    tmux.until("⊘ Create c.txt  you said no: keep it open", "Second block, then slow.")
    tmux.keys("Escape")
    tmux.until("■ Stopped")
    tmux.keys("go on please", "Enter")
    tmux.until("Run this command?", "❯ Yes")
    time.sleep(ENTER)
    tmux.keys("Enter")
    tmux.until("● Run echo begun; sleep 1000", "  begun")
    live = told(tmux.shown)
    assert "✓ Create b.txt  +2 -0  you allowed it with your change" in live

    home = ("new-session", "-d", "-c", str(tmp_path), "-x", "90", "-y", "30", "-s")
    tmux.run(*home, "second", program("--attach"))
    tmux.until("Attached as terminal 2", "● Run echo begun; sleep 1000", "  begun", name="second")
    seen = [line.replace(" in the first terminal", "") for line in told(tmux.shown_in("second"))]
    assert seen == live
    tmux.run("send-keys", "-t", "second", "C-d")

    shell = tmux.run("list-panes", "-t", "t", "-F", "#{pane_pid}").strip()
    children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    tmux.run(*home, "third", program("--continue"))
    tmux.until("? Run echo begun; sleep 1000", "All done.", "■ Done", name="third")
    assert told(tmux.shown_in("third")) == live
