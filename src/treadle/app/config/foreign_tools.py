"""Calls as Claude Code names them, for hosts, hooks and rules that were written for it, and back.

A call that does several things at once, such as a patch of two files, is several calls there: whoever guards
something has to see each of them.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from treadle.protocol.base import Record

_Arguments = Mapping[str, Any]
_Input = dict[str, Any]


class ClaudeCall(Record, frozen=True, kw_only=True):
    """A call under the name and with the input that Claude Code has for it."""

    name: str
    input: dict[str, Any]


def claude_calls(name: str, arguments: _Arguments, root: str) -> tuple[ClaudeCall, ...]:
    """Give what a call of ours is there, one for each thing that it is about; itself where there is no such tool.

    `root` is the folder that relative paths start from.
    """
    translated = _CALLS.get(name)
    try:
        found = () if translated is None else tuple(translated(arguments, root))
    except (
        AttributeError,
        KeyError,
        OverflowError,
        TypeError,
        ValueError,
    ):  # arguments that the tool does not take either
        found = ()
    return found or (ClaudeCall(name=name, input=dict(arguments)),)


def claude_call(name: str, arguments: _Arguments, root: str) -> ClaudeCall:
    """Give the one call that a call of ours is there; itself where it is none or several."""
    calls = claude_calls(name, arguments, root)
    return calls[0] if len(calls) == 1 else ClaudeCall(name=name, input=dict(arguments))


def amended_arguments(name: str, arguments: _Arguments, given: _Arguments, root: str) -> dict[str, Any] | None:
    """Give our arguments for the input that somebody wants instead of `claude_call`'s; None where it is the same.

    Raises `ValueError` for an input that our tool cannot be called with.
    """
    shown = claude_call(name, arguments, root)
    if dict(given) in (shown.input, dict(arguments)):
        return None
    if name == "use_mcp_tool" and shown.name != name:
        return {**arguments, "arguments": json.dumps(given)}
    if shown.name == name:
        return dict(given)
    return _own(name, given)


def own_tools_of(name: str) -> tuple[str, ...]:
    """Name our tools that do what a tool of Claude Code does; a name that it does not have stands for itself."""
    return _OWN.get(name) or _SUBAGENTS.get(name, (name,))


def own_tools_of_any(name: str) -> tuple[str, ...]:
    """Name our tools that do what a tool of Claude Code, OpenCode or Gemini does, as `own_tools_of` does."""
    return _OWN.get(name) or _SUBAGENTS.get(name) or _OTHERS.get(name, (name,))


def claude_names(names: Iterable[str]) -> tuple[str, ...]:
    """Give the names under which these tools of ours are known there."""
    return tuple(dict.fromkeys(next((other for other, own in _OWN.items() if name in own), name) for name in names))


def claude_part(name: str) -> str:
    """Write the name of a server, or of its tool, as it stands in `mcp__SERVER__TOOL` there."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _own(name: str, given: _Arguments) -> dict[str, Any]:
    from treadle.parsing import own_parameters, validate_arguments
    from treadle.tools.tool_catalogue import SPECS

    spec = SPECS[name]
    try:
        own = own_parameters(spec.parameters, _arranged(name, given))
    except (AttributeError, OverflowError, TypeError) as error:
        raise ValueError(f"A value has the wrong type: {error}.") from error
    if problems := validate_arguments(spec.parameters, own):
        raise ValueError(" ".join(problems))
    return own


def _arranged(name: str, given: _Arguments) -> _Input:
    """Say what Claude Code says in another unit or by another measure."""
    rest = dict(given)
    if name == "execute_command" and isinstance(milliseconds := rest.pop("timeout", None), int | float):
        rest["timeout"] = max(1, round(milliseconds / 1000))
    if name == "search_files" and "-C" in rest:
        rest["context_lines"] = rest.pop("-C")
    if name == "read_file":
        start, count = rest.pop("offset", None), rest.pop("limit", None)
        if start is not None:
            rest["start_line"] = start
        if count is not None:
            rest["end_line"] = (start or 1) + count - 1
    return rest


def _path(path: str, root: str) -> str:
    return os.path.normpath(os.path.join(root, path))  # noqa: PTH118 - a text, whatever there is on the disk


def _some(**said: Any) -> _Input:
    """Give the parameters that have a value."""
    return {name.replace("context", "-C"): value for name, value in said.items() if value is not None}


def _bash(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:  # noqa: ARG001 - as all of them
    seconds = arguments.get("timeout")
    timeout = None if seconds is None else int(seconds * 1000)
    background = arguments.get("background")
    said = _some(command=arguments["command"], timeout=timeout, run_in_background=background)
    yield ClaudeCall(name="Bash", input=said)


def _completion(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    if arguments.get("command"):
        yield from _bash({"command": arguments["command"]}, root)


def _read(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    start, end = arguments.get("start_line"), arguments.get("end_line")
    limit = None if end is None else end - (start or 1) + 1
    said = _some(file_path=_path(arguments["path"], root), offset=start, limit=limit)
    yield ClaudeCall(name="Read", input=said)
    for path in arguments.get("other_paths") or ():
        yield ClaudeCall(name="Read", input={"file_path": _path(path, root)})


def _outline(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    yield ClaudeCall(name="Read", input={"file_path": _path(arguments["path"], root)})


def _write(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    file = _path(arguments["path"], root)
    yield ClaudeCall(name="Write", input={"file_path": file, "content": arguments["content"]})


def _edit(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    from treadle.editing import EditError, parse_blocks

    file, everywhere = _path(arguments["path"], root), bool(arguments.get("replace_all"))
    parsed = parse_blocks(arguments["diff"])
    sections = () if isinstance(parsed, EditError) else parsed
    edits = [_replaced(one.readings[0], everywhere=everywhere) for one in sections if len(one.readings) == 1]
    if len(edits) != len(sections) or not edits:
        # It cannot be said in two texts; that the file is edited must be seen all the same.
        yield ClaudeCall(name="Edit", input={**arguments, "file_path": file})
    elif len(edits) == 1:
        yield ClaudeCall(name="Edit", input={"file_path": file, **edits[0]})
    else:
        yield ClaudeCall(name="MultiEdit", input={"file_path": file, "edits": edits})


def _replaced(block: Any, *, everywhere: bool = False) -> _Input:
    both = {"old_string": "\n".join(block.search), "new_string": "\n".join(block.replace)}
    return {**both, "replace_all": True} if everywhere else both


def _patch(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    from treadle.editing import AddFile, DeleteFile, EditError, parse_operations

    text = arguments["patch"]
    operations = parse_operations(text)
    if isinstance(operations, EditError):
        yield ClaudeCall(name="Edit", input={"patch": text})
        return
    for operation in operations:
        file = _path(operation.path, root)
        match operation:
            case AddFile(text=content):
                yield ClaudeCall(name="Write", input={"file_path": file, "content": content})
            case DeleteFile():
                yield ClaudeCall(name="Edit", input={"file_path": file, "delete": True})
            case _:
                edits = [_replaced(section.readings[0]) for section in operation.sections]
                yield ClaudeCall(name="MultiEdit", input={"file_path": file, "edits": edits})
                if operation.move_to is not None:
                    moved = {"file_path": _path(operation.move_to, root), "moved_from": file}
                    yield ClaudeCall(name="Edit", input=moved)


def _notebook(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    said = _some(
        notebook_path=_path(arguments["path"], root),
        cell_id=arguments["cell"],
        new_source=arguments.get("content"),
        cell_type=arguments.get("cell_type"),
        edit_mode=arguments["action"],
    )
    yield ClaudeCall(name="NotebookEdit", input=said)


def _grep(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    said = _some(
        pattern=arguments["regex"],
        path=_path(arguments["path"], root),
        glob=arguments.get("file_pattern"),
        context=arguments.get("context_lines"),
    )
    yield ClaudeCall(name="Grep", input=said)


def _list(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    said = _some(path=_path(arguments["path"], root), recursive=arguments.get("recursive"))
    yield ClaudeCall(name="LS", input=said)


def _fetch(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:  # noqa: ARG001
    yield ClaudeCall(name="WebFetch", input=_some(url=arguments["url"], start=arguments.get("start")))


def _browse(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:
    if arguments.get("url"):
        yield from _fetch({"url": arguments["url"]}, root)


def _skill(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:  # noqa: ARG001
    yield ClaudeCall(name="Skill", input=_some(skill=arguments["name"], args=arguments.get("arguments")))


def _question(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:  # noqa: ARG001
    options = [{"label": str(one), "description": ""} for one in arguments.get("options") or ()]
    several = arguments.get("multiple") is True
    asked = {"question": arguments["question"], "header": "", "options": options, "multiSelect": several}
    yield ClaudeCall(name="AskUserQuestion", input={"questions": [asked]})


def _of_server(arguments: _Arguments, root: str) -> Iterator[ClaudeCall]:  # noqa: ARG001
    from treadle.mcp.declaring import slug_of, tool_name

    given = arguments.get("arguments") or {}
    read = json.loads(given) if isinstance(given, str) else dict(given)
    slug, tool = slug_of(arguments["server_name"], {}), arguments["tool_name"]
    # Both may be named as they are themselves or as the model has them: it is the same call.
    yield ClaudeCall(name=tool if tool.startswith(f"mcp__{slug}__") else tool_name(slug, tool, {}), input=read)


_CALLS: Mapping[str, Callable[[_Arguments, str], Iterator[ClaudeCall]]] = MappingProxyType(
    {
        "execute_command": _bash,
        "attempt_completion": _completion,
        "read_file": _read,
        "list_code_definition_names": _outline,
        "write_to_file": _write,
        "new_rule": _write,
        "replace_in_file": _edit,
        "apply_patch": _patch,
        "edit_notebook": _notebook,
        "search_files": _grep,
        "list_files": _list,
        "web_fetch": _fetch,
        "browser_action": _browse,
        "use_skill": _skill,
        "ask_followup_question": _question,
        "use_mcp_tool": _of_server,
    }
)

_EDITS = ("replace_in_file", "apply_patch")
_OUTPUT = ("read_command_output",)

_OWN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Bash": ("execute_command", "read_command_output"),
        "BashOutput": _OUTPUT,
        "KillShell": _OUTPUT,
        "Read": ("read_file", "list_code_definition_names"),
        "Write": ("write_to_file", "new_rule"),
        "Edit": _EDITS,
        "MultiEdit": _EDITS,
        "NotebookEdit": ("edit_notebook",),
        "Grep": ("search_files",),
        "Glob": ("list_files",),
        "LS": ("list_files",),
        "WebFetch": ("web_fetch", "browser_action"),
        "Skill": ("use_skill",),
        "AskUserQuestion": ("ask_followup_question",),
        "ExitPlanMode": ("plan_mode_respond",),
    }
)

_SUBAGENTS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("Agent", "Task"), ("use_subagents",))
"""Names whose calls have another form there, so that ours keep their own name before a host."""

_READS = ("read_file", "list_code_definition_names")
_COMMANDS = ("execute_command", "read_command_output")
_OTHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # OpenCode
        "read": _READS,
        "write": ("write_to_file", "new_rule"),
        "edit": (*_EDITS, "edit_notebook"),
        "patch": ("apply_patch",),
        "bash": _COMMANDS,
        "grep": ("search_files",),
        "glob": ("list_files",),
        "list": ("list_files",),
        "webfetch": ("web_fetch", "browser_action"),
        "skill": ("use_skill",),
        "question": ("ask_followup_question",),
        # Gemini
        "read_many_files": _READS,
        "write_file": ("write_to_file", "new_rule"),
        "replace": _EDITS,
        "run_shell_command": _COMMANDS,
        "grep_search": ("search_files",),
        "search_file_content": ("search_files",),
        "list_directory": ("list_files",),
        "save_memory": ("new_rule",),
        "activate_skill": ("use_skill",),
        "ask_user": ("ask_followup_question",),
    }
)
