"""The examples of docs/library.md run; tests/docs/test_blocks.py holds that they are typed."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from treadle.testing import call, scripted_model

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/library.md").read_text(), re.MULTILINE | re.DOTALL)
DONE = call("attempt_completion", result="Done.")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


def example(name: str) -> Mapping[str, Any]:
    """What the example defines that has this name in it."""
    (text,) = (one for one in EXAMPLES if f"def {name}" in one)
    defined: dict[str, Any] = {}
    exec(compile(text, f"docs/library.md: {name}", "exec"), defined)
    return defined


def test_every_example_is_run_here() -> None:
    assert [re.findall(r"^async def (\w+)", text, re.MULTILINE) for text in EXAMPLES] == [
        ["main"],
        ["follow"],
        ["guarded"],
        ["shop"],
        ["squawk"],
        ["test_notes_are_written"],
    ]


def test_the_first_program_works_as_it_is(tmp_path: Path) -> None:
    write = {"type": "call", "name": "write_to_file", "arguments": {"path": "a.txt", "content": "a\n"}}
    delete = {"type": "call", "name": "execute_command", "arguments": {"command": "rm a.txt", "timeout": 5}}
    done = {"type": "call", "name": "attempt_completion", "arguments": {"result": "It passes."}}
    script = {"turns": [{"items": [write]}, {"items": [delete]}, {"items": [done]}]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    (tmp_path / "project").mkdir()
    (tmp_path / "program.py").write_text(EXAMPLES[0])
    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        input="n\n" * 3,
        env={"TREADLE_HOME": str(tmp_path / "home"), "TREADLE_MODEL": "scripted/script.json", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "[y/n] It passes. (FileChange(path=" in ended.stdout
    assert (tmp_path / "project" / "a.txt").exists()


async def test_what_happens_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = scripted_model(call("write_to_file", path="poem.txt", content="Roses.\n"), DONE)
    assert await example("follow")["follow"](tmp_path, model) == "Done."
    assert capsys.readouterr().out == "runs write_to_file\nruns attempt_completion\n"


@pytest.mark.parametrize(("name", "written"), [("notes.txt", True), ("notes.py", False)])
async def test_an_approval_function_lets_text_files_be_written_only(tmp_path: Path, name: str, written: bool) -> None:
    model = scripted_model(call("write_to_file", path=name, content="x\n"), DONE)
    assert await example("guarded")["guarded"](tmp_path, model) is written
    assert (tmp_path / name).exists() is written
    assert ("Write text files only." in str(model.requests[1].messages[-1])) is not written


async def test_a_function_of_the_program_is_a_tool(tmp_path: Path) -> None:
    model = scripted_model(call("price_of", article="A1"), call("attempt_completion", result="9.50 euros."))
    assert await example("shop")["shop"](tmp_path, model) == "9.50 euros."
    assert "9.5" in str(model.requests[1].messages[-1])


async def test_a_model_of_the_program_answers(tmp_path: Path) -> None:
    assert await example("squawk")["squawk"](tmp_path) == "Squawk."


async def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    await example("test_notes_are_written")["test_notes_are_written"](tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "hello\n"
