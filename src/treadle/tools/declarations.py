"""What the built-in tools say of themselves: read for the first request, long before the tools themselves are."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from treadle.protocol.tools import Flow, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits

_HERE = Path(__file__).parent

MOST_FILES = 20
"""Files that one call of read_file reads."""

MOST_SECONDS = 600
"""How long a command may be waited for."""

BROWSER_ACTIONS = ("launch", "click", "type", "press", "scroll_down", "scroll_up", "screenshot", "close")

OUTLINE_LANGUAGES = (
    *("Python", "JavaScript", "TypeScript", "Go", "Rust", "Java", "C", "C++", "C#", "Ruby", "PHP", "Kotlin", "Swift"),
)
"""The languages of which there are outlines, Python first; the others come together, with an extra."""


def prompt(tool: str) -> str:
    """Read the description that stands beside a tool's module, in a file of the same name ending in `.md`."""
    return (_HERE / f"{tool}.md").read_bytes().decode().strip()


def parameters(properties: Mapping[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Build the JSON Schema of an object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


class _Header(Struct, frozen=True, kw_only=True):
    """What a tool's text says of it above the description. `optional` names parameters that may be left out."""

    kind: ToolKind
    effect: ToolEffect
    risk: Risk
    parameters: dict[str, Any]
    optional: tuple[str, ...] = ()
    apart: bool = False


def declaration_of(tool: str) -> ToolSpec:
    """Read the declaration of a tool whose text begins with it, as JSON between two lines of `---`."""
    _, header, description = prompt(tool).split("---\n", 2)
    said = msgspec.json.decode(header, type=_Header)
    return ToolSpec(
        name=tool,
        description=description,
        parameters=parameters(said.parameters, optional=said.optional),
        traits=ToolTraits(kind=said.kind, effect=said.effect, apart=said.apart),
        risk=said.risk,
    )


def text(description: str) -> dict[str, Any]:
    """Build the schema of a string."""
    return {"type": "string", "description": description}


def number(description: str, *, low: int, high: int | None = None) -> dict[str, Any]:
    """Build the schema of an integer within bounds."""
    bounds = {"minimum": low} if high is None else {"minimum": low, "maximum": high}
    return {"type": "integer", "description": description, **bounds}


PATH = text("The file, relative to the workspace or absolute.")


def languages() -> str:
    """Say which languages can be outlined here, and what the others need."""
    python, *others = OUTLINE_LANGUAGES
    if find_spec("tree_sitter_javascript") is not None:
        return f"{', '.join(OUTLINE_LANGUAGES)}."
    return f"{python}. {', '.join(others)} need the extra `code`, which is not installed."


READ_FILE = ToolSpec(
    name="read_file",
    description=prompt("read_file"),
    parameters=parameters(
        {
            "path": PATH,
            "start_line": number("The first line to read, from 1.", low=1),
            "end_line": number("The last line to read.", low=1),
            "other_paths": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MOST_FILES - 1,
                "description": "More files to read with the same call, from their beginning.",
            },
        },
        optional=("start_line", "end_line", "other_paths"),
    ),
    traits=ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    risk=Risk.READ,
)

SEARCH_FILES = ToolSpec(
    name="search_files",
    description=prompt("search_files"),
    parameters=parameters(
        {
            "path": text("The directory or file to search, relative to the workspace (`.` is its root) or absolute."),
            "regex": text("The regular expression."),
            "file_pattern": text("A glob such as `*.py` or `src/**/*.ts`, or several with commas: `*.ts,*.tsx`."),
            "context_lines": number("Lines to show around each match; none if not given.", low=0, high=10),
        },
        optional=("file_pattern", "context_lines"),
    ),
    traits=ToolTraits(kind=ToolKind.SEARCH, effect=ToolEffect.PURE),
    risk=Risk.READ,
)

LIST_FILES = ToolSpec(
    name="list_files",
    description=prompt("list_files"),
    parameters=parameters(
        {
            "path": text("The directory, relative to the workspace (`.` is its root) or absolute."),
            "recursive": {"type": "boolean", "description": "Whether to list the whole tree below it."},
        },
        optional=("recursive",),
    ),
    traits=ToolTraits(kind=ToolKind.SEARCH, effect=ToolEffect.PURE),
    risk=Risk.READ,
)

LIST_CODE_DEFINITION_NAMES = ToolSpec(
    name="list_code_definition_names",
    description=f"{prompt('list_code_definition_names')}\n- Languages: {languages()}",
    parameters=parameters({"path": text("The file or directory, relative to the workspace or absolute.")}),
    traits=ToolTraits(kind=ToolKind.READ, effect=ToolEffect.PURE),
    risk=Risk.READ,
)

REPLACE_IN_FILE = ToolSpec(
    name="replace_in_file",
    description=prompt("replace_in_file"),
    parameters=parameters(
        {
            "path": PATH,
            "diff": text("One or more SEARCH/REPLACE blocks."),
            "replace_all": {"type": "boolean", "description": "Whether each SEARCH is replaced in every place."},
        },
        optional=("replace_all",),
    ),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)

APPLY_PATCH = ToolSpec(
    name="apply_patch",
    description=prompt("apply_patch"),
    parameters=parameters({"patch": text("The patch, from `*** Begin Patch` to `*** End Patch`.")}),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)

EDIT_NOTEBOOK = declaration_of("edit_notebook")

WRITE_TO_FILE = ToolSpec(
    name="write_to_file",
    description=prompt("write_to_file"),
    parameters=parameters({"path": PATH, "content": text("The complete text of the file.")}),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)

RULE_FOLDER = ".clinerules"
"""Where new rules are written."""

NEW_RULE = ToolSpec(
    name="new_rule",
    description=prompt("new_rule"),
    parameters=parameters(
        {
            "path": text(f"The file: {RULE_FOLDER}/NAME.md."),
            "content": text("The rule, in Markdown."),
        }
    ),
    traits=ToolTraits(kind=ToolKind.EDIT, effect=ToolEffect.IDEMPOTENT),
    risk=Risk.WRITE,
)

USE_SKILL = ToolSpec(
    name="use_skill",
    description=prompt("use_skill"),
    parameters=parameters(
        {"name": text("The skill's name."), "arguments": text("What it is to be used on, if it takes that.")},
        optional=("arguments",),
    ),
    traits=ToolTraits(kind=ToolKind.OTHER, effect=ToolEffect.IDEMPOTENT, apart=True),
    risk=Risk.NONE,
)

USE_SUBAGENTS = declaration_of("use_subagents")

RUN_CODE = declaration_of("run_code")

EXECUTE_COMMAND = ToolSpec(
    name="execute_command",
    description=prompt("execute_command"),
    parameters=parameters(
        {
            "command": text("The shell line."),
            "timeout": number(
                "Seconds until it is stopped. Without, it continues in the background after 120.",
                low=1,
                high=MOST_SECONDS,
            ),
            "background": {
                "type": "boolean",
                "description": ("For servers and watchers: gives a number for read_command_output."),
            },
            "cwd": text("A folder."),
            "needs": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Rights: network:HOST, outside:/PATH, git, host.",
            },
            "reason": text("Why."),
        },
        optional=("timeout", "background", "cwd", "needs", "reason"),
    ),
    traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    risk=Risk.EXECUTE,
)

READ_COMMAND_OUTPUT = ToolSpec(
    name="read_command_output",
    description=prompt("read_command_output"),
    parameters=parameters(
        {
            "command_number": number("Its number.", low=1),
            "wait": number("Seconds to wait for its end.", low=0, high=MOST_SECONDS),
            "stop": {
                "type": "boolean",
                "description": "Stop it and all it started.",
            },
            "wake_on": text("Get new lines that match this regex."),
        },
        optional=("wait", "stop", "wake_on"),
    ),
    # Output is given once, so a second call is not the same again.
    traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    risk=Risk.NONE,
)

SET_TIMER = ToolSpec(
    name="set_timer",
    description=prompt("set_timer"),
    parameters=parameters(
        {
            "seconds": number("0 ends all timers.", low=0),
            "note": text("The note."),
        },
        optional=("note",),
    ),
    traits=ToolTraits(effect=ToolEffect.ONCE),
    risk=Risk.NONE,
)

WEB_FETCH = ToolSpec(
    name="web_fetch",
    description=prompt("web_fetch"),
    parameters=parameters(
        {
            "url": text("The URL, with http:// or https://."),
            "start": number("The character of the page to start at; 0 if not given.", low=0),
        },
        optional=("start",),
    ),
    traits=ToolTraits(kind=ToolKind.FETCH, effect=ToolEffect.PURE),
    risk=Risk.READ_OUTSIDE,
)

BROWSER_ACTION = ToolSpec(
    name="browser_action",
    description=prompt("browser_action"),
    parameters=parameters(
        {
            "action": {"type": "string", "enum": list(BROWSER_ACTIONS), "description": "What to do."},
            "url": text("For launch: the URL, with http:// or https://."),
            "coordinate": text("For click: the place, as `x,y` in pixels of the last screenshot."),
            "selector": text("For type, and for click instead of `coordinate`: the element, as a CSS selector."),
            "text": text("For type: the text."),
            "key": text("For press: the key."),
        },
        optional=("url", "coordinate", "selector", "text", "key"),
    ),
    traits=ToolTraits(kind=ToolKind.FETCH, effect=ToolEffect.ONCE),
    # Each action is judged by the address that it concerns; closing concerns none.
    risk=Risk.NONE,
)

ASK_FOLLOWUP_QUESTION = ToolSpec(
    name="ask_followup_question",
    description=prompt("ask_followup_question"),
    parameters=parameters(
        {
            "question": text("The question."),
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 5,
                "description": "2 to 5; the user can write another.",
            },
            "multiple": {"type": "boolean", "description": "Several fit."},
        },
        optional=("options", "multiple"),
    ),
    traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.ASK),
    risk=Risk.NONE,
)

CONDENSE = ToolSpec(
    name="condense",
    description=prompt("condense"),
    parameters=parameters({"context": text("The summary, in Markdown.")}),
    traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.CONDENSE),
    risk=Risk.NONE,
)

NEW_TASK = ToolSpec(
    name="new_task",
    description=prompt("new_task"),
    parameters=parameters({"context": text("All that the new task needs, in Markdown.")}),
    traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.NEW_TASK),
    risk=Risk.WRITE,
)

PLAN_MODE_RESPOND = ToolSpec(
    name="plan_mode_respond",
    description=prompt("plan_mode_respond"),
    parameters=parameters({"response": text("The answer, in Markdown.")}),
    traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.END_TURN),
    risk=Risk.NONE,
)

ATTEMPT_COMPLETION = ToolSpec(
    name="attempt_completion",
    description=prompt("attempt_completion"),
    parameters=parameters(
        {
            "result": text(
                "What you did and found, short and final, in Markdown; no question and no offer at the end."
            ),
            "command": text(
                "Only where it helps: a shell line that shows the outcome, such as running the new program."
            ),
        },
        optional=("command",),
    ),
    traits=ToolTraits(effect=ToolEffect.ONCE, flow=Flow.END_TURN),
    risk=Risk.NONE,
)
