"""`treadle tools`: the list, one tool, and what is left out."""

from pathlib import Path

import msgspec
import pytest

from treadle.app.reports.tool_list import ToolLine
from treadle.app.session import own_tools
from treadle.cli.main import run
from treadle.workspace.programs.program_process import why_no_programs

SOURCE = '''
def weather(city: str) -> str:
    """Tell the weather."""
    return city
'''


def lines(text: str) -> dict[str, ToolLine]:
    found = [msgspec.json.decode(line, type=ToolLine) for line in text.splitlines()]
    return {line.name: line for line in found}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


def test_the_list_says_which_tools_a_model_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "--json", "--model", "openai-compatible/gpt-5-x", "--base-url", "http://localhost:1/v1"]) == 0
    patching = lines(capsys.readouterr().out)
    assert (patching["apply_patch"].offered, patching["replace_in_file"].offered) == (True, False)
    assert patching["replace_in_file"].why_not == "this model edits with apply_patch"
    assert run(["tools"]) == 0
    table = capsys.readouterr().out
    assert "   apply_patch                 edit     write         idempotent  built in  this model edits with" in table
    assert "\n*  read_file                   read     read          pure        built in\n" in table


def test_what_a_session_here_leaves_out_has_the_reason_of_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    assert run(["tools", "--json", "-C", str(tmp_path)]) == 0
    found = lines(capsys.readouterr().out)
    assert (found["run_code"].offered, found["run_code"].why_not) == (
        False,
        "code mode is off here. Make the calls one by one",
    )
    assert found["use_skill"].why_not == "there are no skills here. Continue without one"
    (tmp_path / "home/config.toml").write_text("code_mode = true\n")
    assert run(["tools", "--json", "-C", str(tmp_path)]) == 0
    assert lines(capsys.readouterr().out)["run_code"].offered is not bool(why_no_programs())


def test_one_tool_is_shown_as_the_model_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "read_file"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("read_file (built in, kind read, risk read, effect pure; sent to the model)\n\nRead files.")
    assert '"required": [\n    "path"\n  ]' in shown


def test_a_name_that_there_is_not_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "raed_file"]) != 0
    assert "Did you mean read_file" in capsys.readouterr().err


def test_tools_of_packages_are_listed_and_the_broken_ones_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "weatherly-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weatherly\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[treadle.tools]\na = weatherly:weather\nb = weatherly:gone\n")
    (tmp_path / "weatherly.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(own_tools, "installed_directories", lambda: (str(tmp_path),))
    assert run(["tools", "--json"]) == 0
    shown = capsys.readouterr()
    mine = lines(shown.out)["weather"]
    assert (mine.origin, mine.risk, mine.offered, mine.description) == (
        "installed",
        "execute",
        True,
        "Tell the weather.",
    )
    assert "treadle: A tool of an installed package is left out: b (weatherly:gone) cannot be loaded" in shown.err
