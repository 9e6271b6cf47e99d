"""Names that other agents give to tools and parameters, where what they mean is exactly one of ours."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from treadle.parsing.readings import Reading, noted
from treadle.protocol.patterns import regex


def folded(name: str) -> str:
    """Write a name without what agents write differently: case, `_` and `-`."""
    return name.replace("_", "").replace("-", "").lower()


OLD, NEW = "old_string", "new_string"
"""Together they stand for a `diff` of one block."""

_PARAMETERS: Mapping[str, Sequence[str]] = {
    "path": (
        *("file_path", "filepath", "filename", "file_name", "file", "absolute_path", "target_file"),
        *("relative_workspace_path", "directory", "dir", "dir_path", "directory_path", "notebook_path"),
    ),
    "command": ("cmd", "command_line"),
    "content": ("contents", "text", "file_text", "file_content", "file_contents", "new_source", "source"),
    "cell": ("cell_id",),
    "action": ("edit_mode",),
    "regex": ("pattern", "query", "regexp"),
    "file_pattern": ("include", "glob", "include_pattern"),
    "start_line": ("line_start", "start_line_one_indexed"),
    "end_line": ("line_end", "end_line_one_indexed_inclusive"),
    "patch": ("input", "patch_text"),
    OLD: ("old_str", "old_text", "search"),
    NEW: ("new_str", "new_text", "replace"),
    "diff": ("patch", "patch_text", "input"),
    "cwd": ("workdir", "working_directory", "working_dir", "work_dir", "directory", "dir", "dir_path"),
    "replace_all": ("allow_multiple",),
    "background": ("run_in_background", "is_background"),
    "command_number": ("command_id", "bash_id", "session_id"),
    "response": ("plan", "message"),
    "name": ("skill_name", "skill"),
    "arguments": ("args",),
    "server_name": ("server",),
    "tool_name": ("tool",),
    "result": ("message", "summary"),
}
"""Ours, and what others say for it; case, `_` and `-` make no difference (`filePath` is `file_path`)."""

APPROVAL = "requires_approval"
"""A parameter of others that only tells people about a call."""

_TOOLS: Mapping[str, Sequence[str]] = {
    "read_file": ("read", "view", "view_file", "open_file", "read_files", "read_many_files", "read_multiple_files"),
    "write_to_file": ("write", "write_file"),
    "replace_in_file": ("edit", "edit_file", "replace", "str_replace", "multi_edit", "search_replace", "apply_diff"),
    "edit_notebook": ("notebook_edit",),
    "execute_command": (
        *("bash", "shell", "terminal", "exec", "local_shell", "run_command", "run_shell_command", "exec_command"),
        *("run_terminal_cmd", "run_terminal_command", "run_in_terminal", "execute_bash"),
    ),
    "search_files": ("grep", "grep_search", "search_file_content", "ripgrep"),
    "list_files": ("ls", "list_dir", "list_directory", "list"),
    "read_command_output": ("bash_output",),
    "web_fetch": ("fetch", "fetch_url", "read_url_content"),
    "use_skill": ("skill", "load_skill", "activate_skill"),
    "ask_followup_question": ("ask_user", "ask_question"),
    "attempt_completion": ("finish", "complete_task", "task_complete", "submit"),
}
"""Ours, and tools of others that do the same."""

_NEAR: Mapping[str, str] = {
    **dict.fromkeys(("glob", "find", "find_files", "file_search", "glob_file_search"), "list_files"),
    **dict.fromkeys(("create", "create_file", "new_file"), "write_to_file"),
    **dict.fromkeys(("insert", "str_replace_editor", "str_replace_based_edit_tool"), "replace_in_file"),
    **dict.fromkeys(("open", "cat"), "read_file"),
    **dict.fromkeys(("kill_shell", "kill_bash", "write_stdin"), "read_command_output"),
    **dict.fromkeys(("fetch_webpage", "web_search"), "web_fetch"),
    **dict.fromkeys(("codebase_search", "semantic_search", "search"), "search_files"),
    **dict.fromkeys(("python", "run", "execute"), "execute_command"),
    **dict.fromkeys(("ask_user_question", "ask"), "ask_followup_question"),
    **dict.fromkeys(("exit_plan_mode",), "plan_mode_respond"),
    **dict.fromkeys(("patch",), "apply_patch"),
}
"""Tools of others that do something else than ours: named to the model, never taken for it."""

_ROOT = frozenset({"search_files", "list_files"})
"""Tools whose `path` other agents leave out for the root of the workspace."""

_EDITORS = frozenset({"strreplaceeditor", "strreplacebasededittool"})
_EDITOR_COMMANDS = {"view": "read_file", "create": "write_to_file", "str_replace": "replace_in_file"}
_APPLY = frozenset({"apply_patch", "applypatch"})
SHELL_TOOL = "execute_command"
PATH_TOOLS = frozenset({"read_file", "list_files"})
"""Tools of which a path alone says all."""

_EDIT_TOOLS = ("replace_in_file", "apply_patch")
"""A model is given one of them; an edit for the other one is as clear, in most cases."""

_HOUR, _LONG = 3600, 10_000
_LEAST_SPELT = 6
"""Letters from which on a name with another letter can only mean one tool."""

_QUALIFIED = regex(r"(?:[\w.-]{0,64}[.:/])?([A-Za-z_][\w-]{0,63})(?::[0-9]{1,4})?")


_BY_TOOL = {folded(other): tool for tool, others in _TOOLS.items() for other in others}
_NEAR_TOOL = {folded(other): tool for other, tool in _NEAR.items()}


@lru_cache(maxsize=256)
def aliases_of(parameters: tuple[str, ...]) -> Mapping[str, str]:
    """Map what others say for these parameters, folded, to the parameters; a name that would be two is left out."""
    parts = _parts_of(parameters)
    wanted = [*parameters, *parts]
    own = {folded(name) for name in wanted}
    found: dict[str, str] = {folded(name): name for name in wanted}
    twice: set[str] = set()
    for name in wanted:
        for other in map(folded, _PARAMETERS.get(name, ())):
            if other in own:
                continue
            if found.setdefault(other, name) != name and name not in parts:
                twice.add(other)
    if not {"regex", "recursive"}.isdisjoint(parameters):
        found["cwd"] = "path"
    return {other: name for other, name in found.items() if other not in twice}


def _parts_of(parameters: Sequence[str]) -> Sequence[str]:
    """Name what stands together for one of these: an old and a new text for a diff, a file and a diff for a patch."""
    if "patch" in parameters:
        return ("path", "diff", OLD, NEW)
    return (OLD, NEW) if "diff" in parameters else ()


@lru_cache(maxsize=256)
def written_aliases(parameters: tuple[str, ...]) -> Mapping[str, str]:
    """Map the names that may stand in a tag for these parameters, spelt as others do, to the parameters."""
    known = {**aliases_of(parameters), folded(APPROVAL): APPROVAL}
    parts = _parts_of(parameters) or (OLD, NEW)
    spelt = [*parameters, *parts, APPROVAL, "cwd"]
    spelt += [other for name in (*parameters, *parts) for other in _PARAMETERS.get(name, ())]
    return {
        form: known[folded(form)]
        for name in spelt
        for form in (name, _camel(name))
        if form not in parameters and folded(form) in known
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


_OF_SERVER, USE_OF_SERVER = "mcp__", "use_mcp_tool"
MeantCall: TypeAlias = tuple[str, dict[str, Any], list[Reading]]
"""A tool, its arguments, and what had to be read to come from another call to this one."""


def meant_calls(name: str, arguments: Mapping[str, Any], known: Sequence[str]) -> Iterator[MeantCall]:
    """The calls of tools of `known` that a call of a tool with another name can mean, the likeliest first."""
    if name.startswith(_OF_SERVER) and USE_OF_SERVER in known:  # of a server that is still starting, maybe
        said = msgspec.json.encode(arguments).decode()
        meant = {"server_name": name.split("__")[1], "tool_name": name, "arguments": said}
        yield USE_OF_SERVER, meant, [Reading.SERVER_TOOL]
        return
    bare = _bare(name)
    if same := own_tool(name, known):
        yield same, dict(arguments), [Reading.TOOL_SPELLING]
    words = arguments.get("command")
    read = [Reading.TOOL_COMMAND]
    if isinstance(words, list) and len(words) == 2 and words[0] in _APPLY:
        tool, given = "apply_patch", {"patch": words[1]}
    elif bare in _EDITORS and isinstance(words, str):
        tool = _EDITOR_COMMANDS.get(words, "")
        given = {key: value for key, value in arguments.items() if key != "command"}
    else:
        tool, given = _BY_TOOL.get(bare, ""), dict(arguments)
        read = [Reading.TOOL_NAME] if tool else []
        tool = tool or _edit_tool(bare)
    tool = noted(Reading.OTHER_EDIT_TOOL, tool, _given_edit_tool(tool, known), read)
    if tool == "execute_command" and "timeout" in given:
        given["timeout"] = _seconds_of_other(bare, given["timeout"])
        tool = tool if given["timeout"] is not None else ""
        read.append(Reading.MILLISECONDS)
    if tool in known:
        yield tool, _arranged(tool, given, read), read


def tool_of_server(arguments: Mapping[str, Any], known: Iterable[str]) -> str:
    """Name the tool of `known` that a call of `use_mcp_tool` means; empty where that is not certain."""
    server, tool = folded(str(arguments.get("server_name", ""))), str(arguments.get("tool_name", ""))
    found = [name for name in known if name.startswith(_OF_SERVER) and (name == tool or name.endswith(f"__{tool}"))]
    if len(found) > 1:
        found = [name for name in found if folded(name.split("__")[1]) == server]
    return found[0] if len(found) == 1 else ""


def _edit_tool(bare: str) -> str:
    """Find the edit tool of this name, whether the model was given it or not."""
    return next((tool for tool in _EDIT_TOOLS if folded(tool) == bare), "")


def _given_edit_tool(tool: str, known: Sequence[str]) -> str:
    """Give the edit tool that the model was given instead of the other one; any other tool as it is."""
    if tool not in _EDIT_TOOLS or tool in known:
        return tool
    return next((other for other in _EDIT_TOOLS if other in known), "")


def _seconds_of_other(bare: str, timeout: Any) -> int | None:
    """Give the seconds of a timeout of another agent's shell; None where the unit is not certain.

    Claude Code's Bash counts milliseconds. What is too long as seconds of any shell is milliseconds, too.
    """
    written = int(timeout) if isinstance(timeout, str) and timeout.strip().isdecimal() and len(timeout) < 9 else timeout
    if isinstance(written, bool) or not isinstance(written, int):
        return None
    if written >= 1000 and (bare == "bash" or surely_milliseconds(written)):
        return math.ceil(written / 1000)
    return None


def surely_milliseconds(number: int) -> bool:
    """Whether a time limit cannot be meant in seconds: it would be hours, and is no whole number of them."""
    return number >= _LONG and number % 1000 == 0 and not (number % _HOUR == 0 and number <= 24 * _HOUR)


def _bare(name: str) -> str:
    """A tool's name without the module that some models put before it, and the number or token behind it, folded."""
    name = name.partition("<|")[0]
    found = _QUALIFIED.fullmatch(name)
    return folded(found[1] if found else name)


def _arranged(tool: str, arguments: dict[str, Any], read: list[Reading]) -> dict[str, Any]:
    """Say as we do what others say by leaving the path out: the root."""
    known = aliases_of(("path",))
    if tool in _ROOT and not any(known.get(folded(given)) == "path" for given in arguments):
        read.append(Reading.ROOT_PATH)
        return {"path": ".", **arguments}
    return arguments


def near_tool(name: str, known: Sequence[str]) -> str:
    """Name the tool of `known` that comes nearest to one of another agent; empty if none does."""
    bare = _bare(name)
    tool = own_tool(name, known) or _BY_TOOL.get(bare) or _NEAR_TOOL.get(bare) or _edit_tool(bare)
    tool = _given_edit_tool(tool, known)
    return tool if tool in known else ""


def tool_of(name: str, known: Sequence[str]) -> str:
    """Find the tool of `known` that does the same as one of another agent; empty if none does."""
    tool = _BY_TOOL.get(_bare(name), "")
    return tool if tool in known else ""


def own_tool(name: str, known: Sequence[str]) -> str:
    """Find the tool of `known` that has this name, spelt or qualified in another way; empty if none does."""
    bare = _bare(name)
    return next((tool for tool in known if folded(tool) == bare), "")


def misspelt_tool(name: str, known: Sequence[str]) -> str:
    """Find the one tool of `known` whose name this is but for a letter; empty if none is, or two are."""
    bare = folded(name)
    found = [tool for tool in known if len(bare) >= _LEAST_SPELT and _one_off(bare, folded(tool))]
    return found[0] if len(found) == 1 else ""


def _one_off(name: str, other: str) -> bool:
    """Whether one letter is missing, too many, another one, or in the place of the next one."""
    same = next((at for at, pair in enumerate(zip(name, other, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return abs(len(name) - len(other)) == 1
    rest, others = name[same:], other[same:]
    swapped = rest[:2] == others[1::-1] and rest[2:] == others[2:]
    return swapped or rest[1:] in (others, others[1:]) or rest == others[1:]
