"""The built-in tools, in the order in which the model is told of them; each is loaded with its first call."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from treadle.engine.ports import Prepared, Tool
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import ToolSpec
from treadle.tools import declarations
from treadle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from treadle.tools.browser_action import BrowserSession
    from treadle.tools.new_rule import MemoryBook
    from treadle.tools.run_code import ProgramBook
    from treadle.tools.use_skill import SkillTexts
    from treadle.tools.use_subagents import SubagentRunner

    class SubagentBook(SubagentRunner, ProgramBook, Protocol):
        """Has subagents work, and programs run."""


_TOOLS: tuple[tuple[ToolSpec, str], ...] = (
    (declarations.READ_FILE, "ReadFile"),
    (declarations.SEARCH_FILES, "SearchFiles"),
    (declarations.LIST_FILES, "ListFiles"),
    (declarations.LIST_CODE_DEFINITION_NAMES, "ListCodeDefinitionNames"),
    (declarations.REPLACE_IN_FILE, "ReplaceInFile"),
    (declarations.APPLY_PATCH, "ApplyPatch"),
    (declarations.WRITE_TO_FILE, "WriteToFile"),
    (declarations.EDIT_NOTEBOOK, "EditNotebook"),
    (declarations.NEW_RULE, "NewRule"),
    (declarations.USE_SKILL, "UseSkill"),
    (declarations.EXECUTE_COMMAND, "ExecuteCommand"),
    (declarations.READ_COMMAND_OUTPUT, "ReadCommandOutput"),
    (declarations.SET_TIMER, "SetTimer"),
    (declarations.USE_SUBAGENTS, "UseSubagents"),
    (declarations.RUN_CODE, "RunCode"),
    (declarations.WEB_FETCH, "WebFetch"),
    (declarations.BROWSER_ACTION, "BrowserAction"),
    (declarations.ASK_FOLLOWUP_QUESTION, "AskFollowupQuestion"),
    (declarations.CONDENSE, "Condense"),
    (declarations.NEW_TASK, "NewTask"),
    (declarations.PLAN_MODE_RESPOND, "PlanModeRespond"),
    (declarations.ATTEMPT_COMPLETION, "AttemptCompletion"),
)
"""Each tool is a class in the module of its own name."""

SPECS: Mapping[str, ToolSpec] = {spec.name: spec for spec, _ in _TOOLS}
"""The declarations of all, by name."""

_WITHOUT_WORKSPACE = (
    declarations.ASK_FOLLOWUP_QUESTION,
    declarations.CONDENSE,
    declarations.NEW_TASK,
    declarations.PLAN_MODE_RESPOND,
)


class _LateTool:
    """A tool that is loaded when it is called; `load` gives the same one each time."""

    def __init__(self, spec: ToolSpec, load: Callable[[], Tool]) -> None:
        self.spec = spec
        self._load = load

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Load it, and let it prepare the call."""
        return await self._load().prepare(arguments)


def builtin_tools(
    workspace: Workspace,
    *,
    browser: "Callable[[], BrowserSession] | None" = None,
    skills: "SkillTexts | None" = None,
    memory: "Callable[[], MemoryBook] | None" = None,
    subagents: "Callable[[], SubagentBook] | None" = None,
) -> tuple[Tool, ...]:
    """Make every built-in tool for one workspace; who runs them gives a `browser`, and closes it at the end.

    `skills` are the texts of the skills that there are, `memory` gives where what is remembered is kept,
    and `subagents` what has these work, and programs run.
    """

    def late(spec: ToolSpec, name: str) -> Tool:
        @cache
        def load() -> Tool:
            made = getattr(import_module(f"treadle.tools.{spec.name}"), name)
            if spec is declarations.BROWSER_ACTION:
                tool: Tool = made((browser or partial(open_browser, workspace))())
            elif spec is declarations.WEB_FETCH:
                tool = made(servers=workspace.servers)
            elif spec is declarations.USE_SKILL:
                tool = made(skills or _no_skills, subagents or _no_subagents)
            elif spec in (declarations.USE_SUBAGENTS, declarations.RUN_CODE):
                tool = made((subagents or _no_subagents)())
            elif spec is declarations.NEW_RULE:
                tool = made(workspace, memory and memory())
            else:
                tool = made() if spec in _WITHOUT_WORKSPACE else made(workspace)
            return tool

        return _LateTool(spec, load)

    return tuple(late(spec, name) for spec, name in _TOOLS)


def _no_skills(name: str, arguments: str) -> str:  # noqa: ARG001 - the port's shape
    raise ToolError("There are no skills here. Continue without one.", invalid=True)


def _no_subagents() -> "SubagentBook":
    raise ToolError("There are no subagents here. Do the task yourself.", invalid=True)


def open_browser(workspace: Workspace) -> "BrowserSession":
    """Begin the session of a browser, which starts with its first action and sees the servers of the workspace."""
    from treadle.tools.browser_action import BrowserSession, open_chromium

    return BrowserSession(partial(open_chromium, workspace.servers), workspace.servers)
