"""What the tools declare."""

from pathlib import Path
from typing import Any

from treadle import tools
from treadle.protocol.tools import Flow, Risk, ToolEffect, ToolKind
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import Workspace


async def test_every_tool_declares_what_the_loop_acts_on(workspace: Workspace) -> None:
    declared = {
        tool.spec.name: (tool.spec.traits.kind, tool.spec.traits.effect, tool.spec.traits.flow, tool.spec.risk)
        for tool in builtin_tools(workspace)
    }
    assert declared == {
        "read_file": (ToolKind.READ, ToolEffect.PURE, Flow.RUN, Risk.READ),
        "search_files": (ToolKind.SEARCH, ToolEffect.PURE, Flow.RUN, Risk.READ),
        "list_files": (ToolKind.SEARCH, ToolEffect.PURE, Flow.RUN, Risk.READ),
        "list_code_definition_names": (ToolKind.READ, ToolEffect.PURE, Flow.RUN, Risk.READ),
        "replace_in_file": (ToolKind.EDIT, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.WRITE),
        "apply_patch": (ToolKind.EDIT, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.WRITE),
        "edit_notebook": (ToolKind.EDIT, ToolEffect.ONCE, Flow.RUN, Risk.WRITE),
        "write_to_file": (ToolKind.EDIT, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.WRITE),
        "new_rule": (ToolKind.EDIT, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.WRITE),
        "use_skill": (ToolKind.OTHER, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.NONE),
        "execute_command": (ToolKind.EXECUTE, ToolEffect.ONCE, Flow.RUN, Risk.EXECUTE),
        "read_command_output": (ToolKind.EXECUTE, ToolEffect.ONCE, Flow.RUN, Risk.NONE),
        "set_timer": (ToolKind.OTHER, ToolEffect.ONCE, Flow.RUN, Risk.NONE),
        "use_subagents": (ToolKind.OTHER, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.NONE),
        "run_code": (ToolKind.OTHER, ToolEffect.IDEMPOTENT, Flow.RUN, Risk.NONE),
        "web_fetch": (ToolKind.FETCH, ToolEffect.PURE, Flow.RUN, Risk.READ_OUTSIDE),
        "browser_action": (ToolKind.FETCH, ToolEffect.ONCE, Flow.RUN, Risk.NONE),
        "ask_followup_question": (ToolKind.OTHER, ToolEffect.PURE, Flow.ASK, Risk.NONE),
        "condense": (ToolKind.OTHER, ToolEffect.PURE, Flow.CONDENSE, Risk.NONE),
        "new_task": (ToolKind.OTHER, ToolEffect.PURE, Flow.NEW_TASK, Risk.WRITE),
        "plan_mode_respond": (ToolKind.OTHER, ToolEffect.PURE, Flow.END_TURN, Risk.NONE),
        "attempt_completion": (ToolKind.OTHER, ToolEffect.ONCE, Flow.END_TURN, Risk.NONE),
    }


async def test_every_tool_has_its_prompt_beside_it(workspace: Workspace) -> None:
    directory = Path(tools.__file__).parent
    assert {path.stem for path in directory.glob("*.md")} == {tool.spec.name for tool in builtin_tools(workspace)}
    for tool in builtin_tools(workspace):
        # What is ready here may follow.
        text = (directory / f"{tool.spec.name}.md").read_text(encoding="utf-8").strip().rpartition("\n---\n")[2]
        assert tool.spec.description.startswith(text)


async def test_every_parameter_is_described_and_no_other_is_allowed(workspace: Workspace) -> None:
    for tool in builtin_tools(workspace):
        schema: dict[str, Any] = tool.spec.parameters
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(parameter["description"] for parameter in schema["properties"].values())
