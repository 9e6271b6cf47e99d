import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needed import needs

pytestmark = needs("tmux")

_PATIENCE = 90.0
SCRIPT = {
    "turns": [
        {
            "items": [
                {"type": "text", "text": "I write **it**.\n"},
                {"type": "call", "name": "write_to_file", "arguments": {"path": "a.txt", "content": "日本\n"}},
            ]
        },
        {"items": [{"type": "text", "text": "Now slow."}, {"type": "wait", "seconds": 1000}]},
        {"items": [{"type": "call", "name": "attempt_completion", "arguments": {"result": "All *done*."}}]},
    ]
}


AMENDED = {
    "turns": [
        {"items": [{"type": "call", "name": "write_to_file", "arguments": {"path": "a.txt", "content": "a\nb\n"}}]},
        {"items": [{"type": "call", "name": "attempt_completion", "arguments": {"result": "All *done*."}}]},
    ]
}


class Tmux:
    """One pane on a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = str(folder / "tmux")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TMUX")},
            "TREADLE_HOME": str(folder / "home"),
            "LC_ALL": "C.UTF-8",
            "VISUAL": "sed -i s/a/x/",
        }

    def run(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start(self, command: str) -> None:
        """Start the program here, by short names, and wait until it is ready."""
        self.run("new-session", "-d", "-c", str(self._folder), "-x", "90", "-y", "30", "-s", "t", command)
        self.until("? for keys")

    def ask_first(self) -> None:
        """Have commands asked about before they run."""
        home = Path(self._environment["TREADLE_HOME"])
        home.mkdir()
        (home / "config.toml").write_text("try_first = false\n")

    @property
    def shown(self) -> str:
        return self.shown_in("t")

    def shown_in(self, name: str) -> str:
        """All that a terminal shows, its scrollback too."""
        return self.run("capture-pane", "-p", "-S", "-", "-t", name)

    def until(self, *texts: str, name: str = "t") -> None:
        end = time.monotonic() + _PATIENCE
        while not all(text in self.shown_in(name) for text in texts):
            if time.monotonic() > end:
                pytest.fail(f"never seen: {texts}\n{self.shown_in(name)}")
            time.sleep(0.1)

    def keys(self, *keys: str) -> None:
        self.run("send-keys", "-t", "t", *keys)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    server = Tmux(tmp_path)
    yield server
    server.run("kill-server")


def test_a_session_in_a_real_terminal(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    script.write_text(json.dumps(SCRIPT))
    command = f"{sys.executable} -m treadle -C ws --model scripted/script.json; echo code $?; stty -a; sleep 1000"
    tmux.start(command)
    tmux.keys("write it", "Enter")
    tmux.until("I write it.", "Create a.txt?", "+ 日本", "❯ Yes")
    tmux.run("resize-window", "-t", "t", "-x", "60", "-y", "20")
    time.sleep(1.2)
    tmux.keys("Enter")
    tmux.until("✓ Create a.txt", "Now slow.")
    assert (workspace / "a.txt").read_text() == "日本\n"
    tmux.keys("Escape")
    tmux.until("■ Stopped")
    tmux.keys("go on", "Enter")
    tmux.until("All done.", "■ Done")
    tmux.keys("C-d")
    tmux.until("code 0", " icanon", " echo")
    assert "I write it." in tmux.shown


def test_a_call_is_amended_in_an_editor_of_a_real_terminal(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    script.write_text(json.dumps(AMENDED))
    command = f"{sys.executable} -m treadle -C ws --model scripted/script.json; sleep 1000"
    tmux.start(command)
    tmux.keys("write it", "Enter")
    tmux.until("Create a.txt?", "ctrl-g edit first")
    tmux.keys("C-g")
    tmux.until("▎   x", "❯ Yes, with your change")
    time.sleep(1.2)
    tmux.keys("Enter")
    tmux.until("✓ Create a.txt", "■ Done")
    assert (workspace / "a.txt").read_text() == "x\nb\n"
    tmux.keys("still here")
    tmux.until("› still here")


def test_the_pager_shows_a_long_command_and_gives_the_screen_back(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    line = "\n".join([*(f": line {number}" for number in range(100)), "touch made"])
    call = {"type": "call", "name": "execute_command", "arguments": {"command": line}}
    script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "I run **it**.\n"}, call]}]}))
    tmux.ask_first()
    command = f"{sys.executable} -m treadle -C ws --model scripted/script.json; sleep 1000"
    tmux.run("new-session", "-d", "-c", str(tmp_path), "-x", "90", "-y", "30", "-s", "t", command)
    tmux.until("? for keys")
    tmux.keys("do it", "Enter")
    tmux.until("I run it.", "more lines, ctrl-o shows all", "ctrl-o all", "touch made", "❯ Yes")
    before = tmux.shown
    tmux.keys("C-o")
    tmux.until(": line 20", "q back")
    assert tmux.run("display-message", "-p", "-t", "t", "#{alternate_on}").strip() == "1"
    assert "Run this command?" in tmux.shown
    tmux.keys("/line 70", "Enter")
    tmux.until(": line 70", ": line 80")
    tmux.keys("G", "Enter", "y", "Enter")
    tmux.until("touch made  asked about", "q back")
    tmux.run("resize-window", "-t", "t", "-x", "60", "-y", "20")
    tmux.until("q back")
    tmux.run("resize-window", "-t", "t", "-x", "90", "-y", "30")
    tmux.keys("q")
    tmux.until(before.strip())
    assert tmux.run("display-message", "-p", "-t", "t", "#{alternate_on}").strip() == "0"
    assert not (workspace / "made").exists()


def test_files_and_models_are_chosen_in_a_small_terminal(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    (workspace / "shop").mkdir(parents=True)
    for name in ("shop/cart.py", "shop/bad\udcff\nname.py"):
        (workspace / name).touch()
    script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "I **look**."}]}]}))
    tmux.start(f"{sys.executable} -m treadle -C ws --model scripted/script.json; sleep 1000")
    tmux.run("resize-window", "-t", "t", "-x", "60", "-y", "20")
    tmux.keys("see @ca")
    tmux.until("❯ shop/cart.py")
    tmux.keys("Enter")
    tmux.until("› see @shop/cart.py")
    assert "❯" not in tmux.shown
    tmux.keys("@bad", "Tab")
    tmux.until("@shop/bad\\xff\\nname.py")
    tmux.keys("M-p")
    tmux.until("Model ›", "in use", "esc close")
    tmux.keys("C-a")  # also those without a key
    tmux.keys("sonnet 5-5 anthropic")
    tmux.until("Model › sonnet 5-5 anthropic", "❯ claude-sonnet-5-5", "no key")
    tmux.keys("Escape")
    tmux.keys("please")
    tmux.until("name.py please")
    assert "Model ›" not in tmux.shown
    tmux.keys("Enter")
    tmux.until("› see @shop/cart.py @shop/bad\\xff\\nname.py please", "I look.", "■ Done")


def test_a_log_that_cannot_be_written_is_told_once(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "long " * 20_000}]}]}))
    limit = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (120_000,) * 2); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    program = f"{sys.executable} -c '{limit}' -m treadle -C ws --model scripted/script.json"
    tmux.start(f"{program}; echo code $?; sleep 1000")
    tmux.keys("write it", "Enter")
    tmux.until("code 1")
    assert tmux.shown.count("Try: Free disk space") == 1, tmux.shown


def test_a_paste_and_a_command_of_the_person_in_a_real_terminal(tmux: Tmux, tmp_path: Path) -> None:
    workspace, script = tmp_path / "ws", tmp_path / "script.json"
    workspace.mkdir()
    script.write_text(json.dumps({"turns": [{"items": [{"type": "text", "text": "I see it."}]}]}))
    tmux.start(f"{sys.executable} -m treadle -C ws --model scripted/script.json; sleep 1000")
    tmux.keys("!")
    tmux.until("! Command to run here")
    tmux.keys("seq 1 40; stty")
    tmux.until("! seq 1 40; stty")
    time.sleep(0.5)
    tmux.keys("Enter")
    tmux.until("  40", "goes with your next message", "lines above")
    tmux.run("set-buffer", "\n".join(f"part {number}" for number in range(50)))
    tmux.keys("look ")
    tmux.until("› look")
    tmux.run("paste-buffer", "-p", "-t", "t")
    tmux.until("› look [pasted 50 lines]")
    tmux.keys("Left", "BSpace", "x")
    tmux.until("› lookx[pasted 50 lines]")
    tmux.run("resize-window", "-t", "t", "-x", "60", "-y", "20")
    tmux.until("› lookx[pasted 50 lines]")
    time.sleep(0.5)
    tmux.keys("Enter")
    tmux.until("I see it.", "› lookx[pasted 50 lines]")
    assert "part 7" not in tmux.shown
    tmux.keys("C-r")
    tmux.until("search earlier messages")
    tmux.keys("lookx")
    tmux.until("esc goes back): lookx")
    assert tmux.shown.count("› lookx[pasted 50 lines]") == 2
    tmux.keys("Escape")
    tmux.until("› Describe a task")
