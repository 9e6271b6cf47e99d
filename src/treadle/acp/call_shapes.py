"""A call as clients show it: its title, what it is about, its diff, its output, and how it ended."""

import os
from collections.abc import Iterator
from typing import Any

from treadle.acp.diff_blocks import changed_places
from treadle.acp.shapes import CallLocation, ToolCallShape, ToolContent
from treadle.present.call_words import end_of, said_of, whole_output
from treadle.present.escape import output_of_command, printable
from treadle.present.items import CallItem
from treadle.present.words import clip_text, describe_call, plain
from treadle.protocol.notifications import CallChanged, CallStatus
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolCall, ToolKind

_KIND = "acp"
_YES = "you allowed it"
_LONGEST_TITLE = 300
_SHOWN_OUTPUT = 64_000
_MOST_LOCATIONS = 50
_TICKS = regex("`+")
_PATHS = ("path", "file_path", "directory")

STATUS = {
    CallStatus.PROPOSED: "pending",
    CallStatus.JUDGING: "pending",
    CallStatus.ASKING: "pending",
    CallStatus.STARTING: "in_progress",
    CallStatus.RUNNING: "in_progress",
}


def text_content(text: str) -> ToolContent:
    """Wrap a text, which clients read as Markdown."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def in_fence(text: str, language: str = "") -> str:
    """Write a text as a block of code that it cannot end itself."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shape_of(item: CallItem, root: str) -> dict[str, Any]:
    """Give the fields of a call, but its id, by what is known of it now; `root` is the folder of the session."""
    changed = item.changed
    fields: dict[str, Any] = {
        "title": clip_text(describe_call(changed).text, _LONGEST_TITLE),
        "kind": changed.kind.value,
        "status": status_of(changed),
        "raw_input": changed.call.arguments,
    }
    places = (
        () if changed.preview is None or not changed.preview.is_diff else changed_places(changed.preview.text, root)
    )
    locations = tuple(place.location for place in places) or tuple(_locations(changed.call, root))
    if locations:
        fields["locations"] = locations[:_MOST_LOCATIONS]
    content = tuple(place.block for place in places)
    if changed.result is not None:
        content = (*content, *_outcome(item, changed.result, content))
        fields["raw_output"] = _raw(changed.result)
    if content:
        fields["content"] = content
    return fields


def status_of(changed: CallChanged) -> str:
    """Say where a call is in its life, in the words of the protocol."""
    if changed.status is CallStatus.FINISHED:
        return "failed" if changed.result is not None and changed.result.is_error else "completed"
    return STATUS[changed.status]


def preview_content(preview: Preview | None, root: str) -> tuple[ToolContent, ...]:
    """Show what a call would do."""
    if preview is None or not preview.text:
        return ()
    if preview.is_diff and (places := changed_places(preview.text, root)):
        return tuple(place.block for place in places)
    return (text_content(in_fence(printable(preview.text[:_SHOWN_OUTPUT]), "diff" if preview.is_diff else "")),)


def output_content(output: str) -> ToolContent:
    """Show the output of a command, the end of a long one."""
    cut = len(output) - _SHOWN_OUTPUT
    shown = f"… {cut:,} characters before …\n{output[-_SHOWN_OUTPUT:]}" if cut > 0 else output
    return text_content(in_fence(output_of_command(shown), "console"))


def question_shape(call_id: str, title: str, content: tuple[ToolContent, ...], kind: str = "other") -> ToolCallShape:
    """Give the call that a question is shown with."""
    return ToolCallShape(tool_call_id=call_id, title=title, kind=kind, status="pending", content=content)


def _outcome(item: CallItem, result: CallResult, diff: tuple[ToolContent, ...]) -> Iterator[ToolContent]:
    """Say how it went, where the status does not, and what it brought; what fails may say why with all its words."""
    runs = item.changed.kind is ToolKind.EXECUTE
    text = "" if diff and not result.is_error else whole_output(item)
    words = end_of(item, _KIND) if result.is_error and (runs or not text) else said_of(item, _KIND)
    if words == _YES:  # nothing else than the editor's user knows
        words = ""
    if words:
        yield text_content(printable(words))
    if not text.strip():
        return
    if runs:
        yield output_content(text)
    elif result.outcome is Outcome.OK:
        yield text_content(in_fence(printable(text[:_SHOWN_OUTPUT])))
    else:
        yield text_content(printable(text[:_SHOWN_OUTPUT]))


def _raw(result: CallResult) -> dict[str, Any]:
    return {"outcome": result.outcome.value, "text": plain(result.content)}


def _locations(call: ToolCall, root: str) -> Iterator[CallLocation]:
    line = call.arguments.get("start_line")
    for name in _PATHS:
        path = call.arguments.get(name)
        if isinstance(path, str) and path and "\0" not in path:
            first = line if isinstance(line, int) and line > 0 else None
            yield CallLocation(path=os.path.normpath(os.path.join(root, os.path.expanduser(path))), line=first)  # noqa: PTH111, PTH118
