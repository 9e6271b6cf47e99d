"""The fixtures for pytest: what they give, what fails, and that a run that does not use them pays nothing."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]

USES = """
import asyncio
import os



def test_workspace(treadle_workspace, treadle_model):
    from treadle import Treadle

    assert list(treadle_workspace.iterdir()) == []
    assert "ANTHROPIC_API_KEY" not in os.environ

    async def work():
        async with Treadle(treadle_workspace, model=treadle_model("Hi.")) as t:
            return await t.run("Hello?")

    assert asyncio.run(work()).text == "Hi."


def test_unexpected(treadle_workspace, treadle_model):
    from treadle import Treadle

    async def work():
        async with Treadle(treadle_workspace, model=treadle_model()) as t:
            return await t.run("Hello?")

    assert not asyncio.run(work()).ok
"""

UNUSED = """
import sys


def test_nothing_of_treadle_is_loaded():
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "treadle")
    assert loaded == ["treadle", "treadle.pytest_plugin"]
    assert "msgspec" not in sys.modules
"""


def entry() -> str:
    """The module that the package names to pytest."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    return str(points["pytest11"]["treadle"])


def run_pytest(folder: Path, text: str) -> tuple[int, str]:
    """Run a file of tests in a process of its own, with every warning an error; gives the exit code and the output.

    Other plugins are left out: their warnings are not ours.
    """
    (folder / "test_it.py").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", entry(), "test_it.py"],
        cwd=folder,
        env={
            "ANTHROPIC_API_KEY": "k" * 20,
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_the_fixtures_give_a_folder_and_models_and_fail_for_what_the_script_does_not_expect(tmp_path: Path) -> None:
    code, out = run_pytest(tmp_path, USES)
    assert (code, "2 passed, 1 error" in out) == (1, True), out
    assert "the script has no turn for a request with 0 replies in it" in out


def test_a_run_that_does_not_use_them_loads_nothing_of_treadle(tmp_path: Path) -> None:
    code, out = run_pytest(tmp_path, UNUSED)
    assert code == 0, out


def test_the_plugin_that_is_installed_is_there() -> None:
    assert {"treadle_model", "treadle_workspace"} <= vars(import_module(entry())).keys()


def test_the_name_of_the_library_costs_nothing_until_it_is_used() -> None:
    code = "import sys, treadle; assert set(n for n in sys.modules if n.startswith('treadle')) == {'treadle'}; "
    code += "import treadle; print(hasattr(treadle, 'nothing')); from treadle import Treadle; print(Treadle.__name__)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "Treadle"]
