"""The built-in tools, in the order in which the model is told of them."""

from treadle.engine.ports import Tool
from treadle.tools.apply_patch import ApplyPatch
from treadle.tools.ask_followup_question import AskFollowupQuestion
from treadle.tools.attempt_completion import AttemptCompletion
from treadle.tools.browser_action import BrowserAction, BrowserSession, open_chromium
from treadle.tools.execute_command import ExecuteCommand
from treadle.tools.list_code_definition_names import ListCodeDefinitionNames
from treadle.tools.list_files import ListFiles
from treadle.tools.plan_mode_respond import PlanModeRespond
from treadle.tools.read_command_output import ReadCommandOutput
from treadle.tools.read_file import ReadFile
from treadle.tools.replace_in_file import ReplaceInFile
from treadle.tools.search_files import SearchFiles
from treadle.tools.web_fetch import WebFetch
from treadle.tools.write_to_file import WriteToFile
from treadle.workspace.workspace import Workspace


def builtin_tools(workspace: Workspace, browser: BrowserSession | None = None) -> tuple[Tool, ...]:
    """Make every built-in tool for one workspace; who runs them gives a `browser`, and closes it at the end."""
    return (
        ReadFile(workspace),
        SearchFiles(workspace),
        ListFiles(workspace),
        ListCodeDefinitionNames(workspace),
        ReplaceInFile(workspace),
        ApplyPatch(workspace),
        WriteToFile(workspace),
        ExecuteCommand(workspace),
        ReadCommandOutput(workspace),
        WebFetch(),
        BrowserAction(browser or BrowserSession(open_chromium)),
        AskFollowupQuestion(),
        PlanModeRespond(),
        AttemptCompletion(workspace),
    )
