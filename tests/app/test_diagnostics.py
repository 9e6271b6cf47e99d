"""Diagnostics in the settings: what is refused, and what is set up."""

from pathlib import Path

import pytest

from treadle.app.config.layers import load_settings
from treadle.app.config.sections import DiagnosticSettings
from treadle.app.session.files.edit_diagnostics import CheckerFolders, diagnosed, open_diagnostics
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.tools.diagnosed import DiagnosedTool
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import Workspace, open_workspace


def around(workspace: Workspace) -> CheckerFolders:
    return CheckerFolders(workspace=workspace, private=Path("/nowhere"), mode=lambda: Mode.ASK)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (DiagnosticSettings(files=("*.py",)), "It needs either `command`"),
        (DiagnosticSettings(command="x", server=("y",), files=("*.py",)), "It needs either `command`"),
        (DiagnosticSettings(command="x"), "It needs `files`"),
        (DiagnosticSettings(command="x", files=("*",), language="py", options={"a": 1}), "has no language or options."),
        (
            DiagnosticSettings(server=("x",), files=("*",), pattern="(?P<path>)(?P<line>)(?P<message>)"),
            "A language server has no `pattern`.",
        ),
        (DiagnosticSettings(server=("x", "{files}"), files=("*",)), "{files} is for linters"),
    ],
)
def test_what_cannot_be_set_up_is_told(tmp_path: Path, wanted: DiagnosticSettings, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_diagnostics({"mine": wanted}, around(open_workspace(tmp_path)))
    assert refused.value.what == "The setting diagnostics.mine cannot be used."
    assert why in refused.value.why


def test_the_tools_that_change_files_and_no_others_look_for_problems(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    settings = {"mine": DiagnosticSettings(command="lint {files}", files=("*.py",))}
    diagnostics = open_diagnostics(settings, around(workspace))
    tools = {tool.spec.name: tool for tool in builtin_tools(workspace)}
    checked = diagnosed(tools, diagnostics, workspace)
    assert list(checked) == list(tools)
    changed = {name for name, tool in checked.items() if isinstance(tool, DiagnosedTool)}
    assert changed == {"replace_in_file", "apply_patch", "edit_notebook", "write_to_file", "new_rule"}
    assert diagnostics.covers("/w/a.py")
    assert not diagnostics.covers("/w/a.js")


def test_no_linter_looks_at_a_further_folder_whose_settings_it_would_obey(tmp_path: Path) -> None:
    for name in ("ws", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "other")
    workspace = open_workspace(tmp_path / "ws", roots=(str(tmp_path / "other"),))
    settings = {"mine": DiagnosticSettings(command="lint {files}", files=("*.py",))}
    diagnostics = open_diagnostics(settings, around(workspace))
    covered = [diagnostics.covers(f"{tmp_path}/{name}/a.py") for name in ("ws", "other", "ws/link")]
    assert covered == [True, False, False]


def test_the_file_is_read_as_the_page_writes_it(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "diagnostics.md").read_text()
    examples = [block.partition("```")[0] for block in page.split("```toml\n")[1:]]
    assert len(examples) >= 5
    workspace = open_workspace(tmp_path)
    for number, example in enumerate(examples):
        file = tmp_path / f"{number}.toml"
        file.write_text(example)
        settings = load_settings({}, file).diagnostics
        assert settings
        open_diagnostics(settings, around(workspace))
