"""The arguments of a call as others write them, under our names and in our form."""

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from treadle.parsing.aliases import APPROVAL, NEW, OLD, aliases_of, folded
from treadle.parsing.readings import Reading, noted
from treadle.protocol.patterns import regex

_NO_MEANING = frozenset({folded(APPROVAL), "description", "explanation", "justification", "instruction"})
"""Parameters of others that only tell people about a call: leaving them out changes nothing of what it does."""

_LISTS_OF_PATHS = frozenset({"paths", "filepaths", "files", "filenames", "path"})
_MILLISECONDS = frozenset({"timeoutms", "timeoutmilliseconds"})
_PAIR = "view_range"
_PAIR_TEXT = regex(r"\s*\[\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\]\s*")
_NO_FILE = "/dev/null"
_ADD, _END_PATCH = "*** Add File: ", "*** End Patch"
_FILE_OF_PATCH = regex(
    r"^\*\*\* (?:Update|Add|Delete) File: ?(.+?)[ \t\r]*$|^--- [^\n]*\n\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE
)
_MARKS = ("-------", "<<<<<<<", "=======", "+++++++", ">>>>>>>")


def own_parameters(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], readings: list[Reading] | None = None
) -> dict[str, Any]:
    """Give the arguments under the names of the schema; what had to be read is added to `readings`.

    Another name applies only if the schema takes no others, the parameter itself is not given (or equal), and no
    second name says something else. What stays unknown is for `validate_arguments` to report.
    """
    read = [] if readings is None else readings
    properties = schema.get("properties", {})
    if schema.get("additionalProperties", True) is not False:
        return dict(arguments)
    given = dict(arguments)
    timed = noted(Reading.MILLISECONDS, given, _with_seconds(given, properties), read)
    placed = noted(Reading.PATH_LIST, timed, _with_paths(timed, properties), read)
    listed = noted(Reading.JSON_TEXT, placed, _with_edits(placed, properties), read)
    paired = noted(Reading.LINE_PAIR, listed, _with_pair(listed, properties, read), read)
    given = noted(Reading.LINE_BOUNDS, paired, _with_lines(paired, properties), read)
    named = given if given.keys() <= properties.keys() else _own_names(given, properties, read)
    return noted(Reading.OBJECT_FOR_TEXT, named, _with_text_of_object(named, properties), read)


def _own_names(given: dict[str, Any], properties: Mapping[str, Any], read: list[Reading]) -> dict[str, Any]:
    known = aliases_of(tuple(properties))
    meant = {name: name if name in properties else known.get(folded(name), name) for name in given}
    values: dict[str, list[Any]] = {}
    for name, value in given.items():
        values.setdefault(meant[name], []).append(value)
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = meant[name]
        if any(other != value for other in values[own]):
            own = name
        if own in properties or not _has_no_meaning(own, value):
            found[own] = value
            noted(Reading.PARAMETER_NAME, name, own, read)
        else:
            read.append(Reading.EXPLANATION)
    return _as_edit(found, properties, read)


def _as_edit(arguments: dict[str, Any], properties: Mapping[str, Any], read: list[Reading]) -> dict[str, Any]:
    """Write what an edit tool is given in the form of the tool; for any other tool nothing changes."""
    if "patch" in properties:
        return noted(Reading.EDIT_NOTATION, arguments, _with_patch(arguments), read)
    if "diff" not in properties:
        return arguments
    edit = noted(Reading.EDIT_NOTATION, arguments, _with_diff(arguments), read)
    return noted(Reading.PATH_OF_PATCH, edit, _with_path(edit), read)


def _has_no_meaning(name: str, value: Any) -> bool:
    once = folded(name) == "expectedreplacements" and value in (1, "1")
    return value is None or folded(name) in _NO_MEANING or once


def _with_text_of_object(arguments: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Write the arguments for the tool of a server, given as an object, as its JSON."""
    handed_on = arguments.get("arguments")
    if not isinstance(handed_on, Mapping) or not {"server_name", "tool_name", "arguments"} <= properties.keys():
        return arguments
    return {**arguments, "arguments": msgspec.json.encode(handed_on).decode()}


def _with_seconds(arguments: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Write a time whose name says milliseconds as the `timeout`, which is in seconds."""
    named = next((name for name in arguments if folded(name) in _MILLISECONDS), "")
    if not named or named in properties or "timeout" not in properties or "timeout" in arguments:
        return arguments
    return {
        ("timeout" if name == named else name): (_seconds_of(value) if name == named else value)
        for name, value in arguments.items()
    }


def _seconds_of(milliseconds: Any) -> Any:
    """Give whole seconds, rounded up; what is no number stays."""
    if isinstance(milliseconds, str) and milliseconds.strip().isdecimal() and len(milliseconds) < 20:
        milliseconds = int(milliseconds)
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return milliseconds
    return math.ceil(milliseconds / 1000)


def _with_paths(arguments: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Write a list of paths as the one path, or as the first and the others where the tool takes several."""
    given = [name for name in arguments if folded(name) in _LISTS_OF_PATHS]
    if len(given) != 1 or "path" not in properties or not isinstance(arguments[given[0]], list):
        return arguments
    paths = [_only_path(one) for one in arguments[given[0]]]
    several = "other_paths" in properties and "other_paths" not in arguments
    if not paths or None in paths or (len(paths) > 1 and not several):
        return arguments
    rest = {name: value for name, value in arguments.items() if name != given[0]}
    return {"path": paths[0], **rest, **({"other_paths": paths[1:]} if len(paths) > 1 else {})}


def _only_path(item: Any) -> str | None:
    if isinstance(item, Mapping) and len(item) == 1 and folded(next(iter(item))) in ("path", "filepath", "file"):
        item = next(iter(item.values()))
    return item if isinstance(item, str) else None


def _with_edits(arguments: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Read a list of edits that is written as JSON in a string."""
    edits = arguments.get("edits")
    if not isinstance(edits, str) or "edits" in properties or {"diff", "patch"}.isdisjoint(properties):
        return arguments
    try:
        found = msgspec.json.decode(edits)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
    return {**arguments, "edits": found} if isinstance(found, list) else arguments


def _with_pair(arguments: dict[str, Any], properties: Mapping[str, Any], read: list[Reading]) -> dict[str, Any]:
    """Write the first and the last line that are given as a pair; -1 is the end of the file."""
    pair = arguments.get(_PAIR)
    lines = {"start_line", "end_line"}
    if pair is None or _PAIR in properties or not lines <= properties.keys() or lines & arguments.keys():
        return arguments
    if isinstance(pair, str) and (found := _PAIR_TEXT.fullmatch(pair)):
        read.append(Reading.JSON_TEXT)
        pair = [int(found[1]), int(found[2])]
    if not isinstance(pair, list) or len(pair) != 2:
        return arguments
    rest = {name: value for name, value in arguments.items() if name != _PAIR}
    return {**rest, "start_line": pair[0], **({} if pair[1] == -1 else {"end_line": pair[1]})}


def _with_lines(arguments: dict[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the bounds of lines that say from the beginning, or to the end, of a file."""
    if "start_line" not in properties:
        return arguments
    meant = {name: folded(name) for name in arguments}
    to_end = [name for name, bare in meant.items() if bare in ("endline", "lineend") and _is(arguments[name], -1)]
    rest = {name: value for name, value in arguments.items() if name not in to_end}
    ended = any(meant[name] in ("endline", "lineend") and rest[name] is not None for name in rest)
    first = [name for name in rest if meant[name] in ("startline", "linestart") and _is(rest[name], 0)]
    return rest if ended else {name: value for name, value in rest.items() if name not in first}


def _is(value: Any, number: int) -> bool:
    return not isinstance(value, bool) and (value == number or value == str(number))


def _with_diff(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write an old and a new text, or a list of such pairs as `edits`, as the blocks of a diff."""
    edits = arguments.get("edits", [{name: arguments[name] for name in (OLD, NEW) if name in arguments}])
    if "diff" in arguments or not isinstance(edits, list) or not edits:
        return arguments
    blocks = [_block(edit) for edit in edits]
    if "" in blocks:
        return arguments
    others = {name: value for name, value in arguments.items() if name not in ("edits", OLD, NEW)}
    return {**others, "diff": "\n".join(blocks)}


def _with_path(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take the one file that a patch names for the file that is edited."""
    if "path" in arguments or not isinstance(arguments.get("diff"), str):
        return arguments
    named = _files_of(arguments["diff"])
    only = len(named) == 1 and _NO_FILE not in named
    return {"path": named.pop(), **arguments} if only else arguments


def _files_of(patch: str) -> set[str]:
    return {found[1] or found[2] for found in _FILE_OF_PATCH.finditer(patch)}


def _with_patch(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write an edit of one file, in any notation, as a patch."""
    given = _with_diff(dict(arguments)) if "patch" not in arguments else dict(arguments)
    text, path = given.get("patch", given.get("diff")), given.get("path")
    if not isinstance(text, str) or given.keys() - {"patch", "diff", "path", "replace_all"}:
        return arguments
    if {"patch", "diff"} <= given.keys() or given.get("replace_all", False) not in (False, "false"):
        return arguments
    named = _files_of(text)
    if named:
        return {"patch": text} if path is None or named == {path} else arguments
    if not isinstance(path, str) or not path.strip() or "\n" in path or _END_PATCH in text:
        return {"patch": text} if path is None else arguments
    return {"patch": f"*** Begin Patch\n{_file_of_patch(path, text)}\n{_END_PATCH}"}


def _file_of_patch(path: str, text: str) -> str:
    new = _new_text(text)
    if new is None:
        return f"*** Update File: {path}\n{text}"
    return "\n".join((f"{_ADD}{path}", *(f"+{line}" for line in new.split("\n"))))


def _new_text(diff: str) -> str | None:
    """Give the text of a block that searches for nothing; None for any other diff."""
    begins, ends = "------- SEARCH\n=======\n", "\n+++++++ REPLACE"
    inner = diff.removeprefix(begins).removesuffix(ends)
    whole = len(inner) + len(begins) + len(ends) == len(diff)
    return inner if whole and not any(line.startswith(_MARKS) for line in inner.splitlines()) else None


def _block(edit: Any) -> str:
    """Write one edit as a SEARCH/REPLACE block; empty where a block could not say the same."""
    if not isinstance(edit, Mapping):
        return ""
    known = aliases_of(("diff",))
    named = {known.get(folded(name), name): value for name, value in edit.items()}
    old, new = named.pop(OLD, None), named.pop(NEW, None)
    if not isinstance(old, str) or not isinstance(new, str) or any(named.values()):
        return ""
    if not (old.strip() or (not old and new)):
        return ""
    if new and old and old.endswith("\n") != new.endswith("\n"):
        return ""
    if any(line.startswith(_MARKS) for text in (old, new) for line in text.splitlines()):
        return ""
    searched = [old.removesuffix("\n")] if old else []
    wanted = [new.removesuffix("\n")] if new else []
    return "\n".join(("------- SEARCH", *searched, "=======", *wanted, "+++++++ REPLACE"))
