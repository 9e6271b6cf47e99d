"""Tools of a program and of installed packages, beside the built-in ones."""

import sys
from pathlib import Path

import pytest

from treadle.app.session import own_tools as module
from treadle.app.session.own_tools import OwnTools, own_tools
from treadle.protocol.errors import ConfigError
from treadle.tools.functions import function_tool

SOURCE = '''
def weather(city: str) -> str:
    """Tell the weather.

    Args:
      city: Where.
    """
    print("noise")
    return f"sunny in {city}"

def read_file(path: str) -> str:
    """Read."""
    return path
'''


def twice(text: str) -> str:
    """Say it twice."""
    return text * 2


def package(directory: Path, name: str, entry_points: str, source: str = "") -> None:
    """Lay a package out as an installer does."""
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[treadle.tools]\n{entry_points}\n")
    (directory / f"{name}.py").write_text(source)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where packages are installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(module, "installed_directories", lambda: (str(folder),))
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_tool_of_a_package_is_found_and_one_with_a_name_in_use_is_left_out(installed: Path) -> None:
    package(installed, "mine_a", "x = mine_a:weather\ny = mine_a:read_file", SOURCE)
    found = own_tools(["read_file"])
    assert [tool.spec.name for tool in found.tools] == ["weather"]
    assert found.problems == ("The tool read_file of an installed package is left out: the name is already used.",)


@pytest.mark.parametrize("source", ["raise ValueError(1)", "import sys; sys.exit(3)", "import no_such_module", "x = ("])
def test_a_broken_package_is_told_and_stops_nothing(installed: Path, source: str) -> None:
    package(installed, "mine_b", "x = mine_b:weather", source)
    package(installed, "mine_c", "y = mine_c:weather", SOURCE)
    found = own_tools([])
    sys.modules.pop("mine_b", None)
    sys.modules.pop("mine_c", None)
    assert [tool.spec.name for tool in found.tools] == ["weather"]
    assert len(found.problems) == 1
    left_out = "A tool of an installed package is left out: x (mine_b:weather) cannot be loaded"
    assert found.problems[0].startswith(left_out)


def test_what_a_package_prints_when_loaded_does_not_get_into_our_output(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(installed, "mine_d", "x = mine_d:weather", f"print('loud')\n{SOURCE}")
    assert len(own_tools([]).tools) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "loud\n")


def test_a_package_described_in_the_folder_that_is_worked_in_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "hostile", "a = hostile:weather", "raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert own_tools([]) == OwnTools()


def test_a_program_gives_tools_and_a_name_in_use_is_refused() -> None:
    tool = function_tool(twice)
    assert own_tools(["read_file"], [tool]) == OwnTools(tools=(tool,))
    with pytest.raises(ConfigError, match="There is already a tool named twice"):
        own_tools(["twice"], [tool])
    with pytest.raises(ConfigError, match="There is already a tool named twice"):
        own_tools([], [tool, tool])
