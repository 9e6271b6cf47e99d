"""What is loaded when, and who may import whom."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "treadle"
DRIVER = (sys.executable, str(Path(__file__).with_name("modules_driver.py")))
SURFACES = ("prompt_toolkit", "rich", "textual", "pygments")
PAGE = ("treadle.web", "starlette", "uvicorn", "jinja2", "markdown_it", "segno", "cryptography")
LIBRARIES = (
    "httpx2",
    "anthropic",
    "openai",
    "google",
    "botocore",
    "mcp",
    "tree_sitter",
    "playwright",
    "keyring",
    "rapidfuzz",
)
SETTINGS = ("tomllib", "tomlkit", "configparser")
WHILE_WORKING = ("sqlite3.dump", "charset_normalizer", "treadle.policy", "treadle.editing", "treadle.parsing")
LATE = (*SURFACES, *PAGE, *LIBRARIES, *SETTINGS, *WHILE_WORKING)
"""What the first request needs nothing of; a name stands for what is below it, too."""


MOST_MODULES = 155
"""Modules of our own that the first request may load, folders aside: each takes a third of a millisecond."""


class Start:
    """What was run and loaded until the first request was about to go out."""

    def __init__(self, listing: str) -> None:
        programs, _, modules = listing.partition("\n\n")
        self.programs = programs.split()
        self.modules = frozenset(modules.split())


@pytest.fixture(params=["anthropic", "chat"])
async def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    """Work off a task in an empty folder without any settings."""
    listing, folder = tmp_path / "modules", tmp_path / "folder"
    folder.mkdir()
    async with ScriptedServer(Script(turns=(Turn(items=(SayText(text="Hi."),)),))) as server:
        flags = (*model(server, request.param), "--directory", str(folder))
        ended = await Program(tmp_path / "home").run("-p", "Hi.", *flags, command=(*DRIVER, str(listing)))
    assert ended.code == Exit.DONE, ended.err
    return Start(listing.read_text())


async def test_the_first_request_needs_little(start: Start) -> None:
    assert "httpcore2" in start.modules
    late = [name for name in start.modules if any(f"{name}.".startswith(f"{one}.") for one in LATE)]
    assert sorted(late) == []
    assert [name for name in start.programs if name != "rg"] == []  # the list of files is part of it
    assert len(start.programs) == 1
    ours = [name for name in start.modules if name.partition(".")[0] == "treadle"]
    assert len([name for name in ours if not (SOURCE.parent / name.replace(".", "/")).is_dir()]) <= MOST_MODULES


async def test_no_class_on_the_start_path_is_built_by_a_decorator(start: Start) -> None:
    assert built_by_a_decorator(start.modules) == []


def test_the_first_paint_needs_neither_the_painter_nor_the_edit_engine() -> None:
    code = "import sys, treadle.app.compose, treadle.tui.terminal_main; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = frozenset(ended.stdout.split())
    late = ("rich", "pygments", "rapidfuzz", "treadle.editing", "treadle.policy.shell", *PAGE, *LIBRARIES)
    assert sorted(name for name in loaded if any(f"{name}.".startswith(f"{one}.") for one in late)) == []
    assert built_by_a_decorator(loaded) == []


@pytest.mark.parametrize("words", [["--help"], ["sessions", "--help"], ["--version"]])
def test_help_is_written_without_the_program(words: list[str]) -> None:
    code = f"import sys; from treadle.__main__ import _run; sys.argv[1:] = {words}; _run(); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"msgspec", "asyncio", "sqlite3", "treadle.protocol.errors", "treadle.app.compose"}
    assert late & set(ended.stdout.splitlines()[-1].split()) == set()


def built_by_a_decorator(modules: Iterable[str]) -> list[str]:
    """Find the modules of ours that compile classes while they are loaded (docs/decisions/0005)."""
    ours = [SOURCE.joinpath(*name.split(".")[1:]) for name in modules if name.partition(".")[0] == "treadle"]
    files = [file for path in ours for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    assert len(files) > 100
    return [str(file) for file in files if "@dataclass" in file.read_text(encoding="utf-8")]


def test_the_import_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    ended = subprocess.run([tool, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
