"""The built-in tools, in the order in which the model is told of them; each is loaded with its first call."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from treadle.engine.ports import Prepared, Tool
from treadle.protocol.tools import ToolSpec
from treadle.tools import declarations
from treadle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from treadle.tools.browser_action import BrowserSession

_SPECS = (
    declarations.READ_FILE,
    declarations.SEARCH_FILES,
    declarations.LIST_FILES,
    declarations.LIST_CODE_DEFINITION_NAMES,
    declarations.REPLACE_IN_FILE,
    declarations.APPLY_PATCH,
    declarations.WRITE_TO_FILE,
    declarations.EXECUTE_COMMAND,
    declarations.READ_COMMAND_OUTPUT,
    declarations.WEB_FETCH,
    declarations.BROWSER_ACTION,
    declarations.ASK_FOLLOWUP_QUESTION,
    declarations.PLAN_MODE_RESPOND,
    declarations.ATTEMPT_COMPLETION,
)


class _LateTool:
    """A tool that is loaded when it is called; `load` gives the same one each time."""

    def __init__(self, spec: ToolSpec, load: Callable[[], Tool]) -> None:
        self.spec = spec
        self._load = load

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Load it, and let it prepare the call."""
        return await self._load().prepare(arguments)


def builtin_tools(workspace: Workspace, browser: "Callable[[], BrowserSession] | None" = None) -> tuple[Tool, ...]:
    """Make every built-in tool for one workspace; who runs them gives a `browser`, and closes it at the end."""

    @cache
    def load(name: str) -> Tool:
        return _tool(name, workspace, browser or open_browser)

    return tuple(_LateTool(spec, lambda name=spec.name: load(name)) for spec in _SPECS)  # type: ignore[misc]


def open_browser() -> "BrowserSession":
    """Begin the session of a browser, which starts with its first action."""
    from treadle.tools.browser_action import BrowserSession, open_chromium

    return BrowserSession(open_chromium)


def _tool(  # noqa: C901, PLR0911, PLR0912 - one case for each tool
    name: str, workspace: Workspace, browser: "Callable[[], BrowserSession]"
) -> Tool:
    match name:
        case declarations.READ_FILE.name:
            from treadle.tools.read_file import ReadFile

            return ReadFile(workspace)
        case declarations.SEARCH_FILES.name:
            from treadle.tools.search_files import SearchFiles

            return SearchFiles(workspace)
        case declarations.LIST_FILES.name:
            from treadle.tools.list_files import ListFiles

            return ListFiles(workspace)
        case declarations.LIST_CODE_DEFINITION_NAMES.name:
            from treadle.tools.list_code_definition_names import ListCodeDefinitionNames

            return ListCodeDefinitionNames(workspace)
        case declarations.REPLACE_IN_FILE.name:
            from treadle.tools.replace_in_file import ReplaceInFile

            return ReplaceInFile(workspace)
        case declarations.APPLY_PATCH.name:
            from treadle.tools.apply_patch import ApplyPatch

            return ApplyPatch(workspace)
        case declarations.WRITE_TO_FILE.name:
            from treadle.tools.write_to_file import WriteToFile

            return WriteToFile(workspace)
        case declarations.EXECUTE_COMMAND.name:
            from treadle.tools.execute_command import ExecuteCommand

            return ExecuteCommand(workspace)
        case declarations.READ_COMMAND_OUTPUT.name:
            from treadle.tools.read_command_output import ReadCommandOutput

            return ReadCommandOutput(workspace)
        case declarations.WEB_FETCH.name:
            from treadle.tools.web_fetch import WebFetch

            return WebFetch()
        case declarations.BROWSER_ACTION.name:
            from treadle.tools.browser_action import BrowserAction

            return BrowserAction(browser())
        case declarations.ASK_FOLLOWUP_QUESTION.name:
            from treadle.tools.ask_followup_question import AskFollowupQuestion

            return AskFollowupQuestion()
        case declarations.PLAN_MODE_RESPOND.name:
            from treadle.tools.plan_mode_respond import PlanModeRespond

            return PlanModeRespond()
        case declarations.ATTEMPT_COMPLETION.name:
            from treadle.tools.attempt_completion import AttemptCompletion

            return AttemptCompletion(workspace)
        case _:
            raise ValueError(f"there is no built-in tool {name!r}")
