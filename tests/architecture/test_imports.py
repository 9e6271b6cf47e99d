"""What is loaded when, and who may import whom."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.server import ScriptedServer

ROOT = Path(__file__).parents[2]
DRIVER = (sys.executable, str(Path(__file__).with_name("modules_driver.py")))
HEAVY = ("anthropic", "openai", "google", "mcp", "prompt_toolkit", "rich", "textual", "tree_sitter", "playwright")


@pytest.mark.parametrize("wire", ["anthropic", "chat"])
async def test_nothing_heavy_is_loaded_before_the_first_request(tmp_path: Path, wire: str) -> None:
    listing = tmp_path / "modules"
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hi."),)),))) as server:
        flags = (*model(server, wire), "--directory", str(tmp_path))
        ended = await Program(tmp_path / "home").run("-p", "Hi.", *flags, command=(*DRIVER, str(listing)))
    assert ended.code == Exit.DONE, ended.err
    loaded = {name.partition(".")[0] for name in listing.read_text().splitlines()}
    assert "treadle" in loaded
    assert sorted(loaded & set(HEAVY)) == []


def test_the_import_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    if not tool.exists():
        pytest.skip("import-linter is not installed")
    ended = subprocess.run([tool, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
