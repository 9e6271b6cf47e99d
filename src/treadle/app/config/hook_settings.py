"""Hooks as settings have them, Treadle's own and Claude Code's: which events there are, and what each handler does."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from treadle.protocol.base import Record
from treadle.protocol.patterns import regex


class HookEvent(StrEnum):
    """The moments at which Treadle runs hooks, under the names of Claude Code."""

    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    PERMISSION_REQUEST = "PermissionRequest"
    PERMISSION_DENIED = "PermissionDenied"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    STOP = "Stop"
    STOP_FAILURE = "StopFailure"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    PRE_MODEL_SWITCH = "PreModelSwitch"
    POST_MODEL_SWITCH = "PostModelSwitch"
    POST_TOOL_BATCH = "PostToolBatch"
    ELICITATION = "Elicitation"
    CONFIG_CHANGE = "ConfigChange"
    NOTIFICATION = "Notification"


_EVENTS: frozenset[str] = frozenset(HookEvent)
POLICY_EVENTS = frozenset(
    {
        HookEvent.PRE_TOOL_USE,
        HookEvent.PERMISSION_REQUEST,
        HookEvent.USER_PROMPT_SUBMIT,
        HookEvent.PRE_MODEL_SWITCH,
    }
)
"""Moments at which a hook decides whether something happens: one that fails there blocks, unless it says otherwise."""

_OTHER_EVENTS = """
    UserPromptExpansion SubagentStart SubagentStop Setup TeammateIdle TaskCreated TaskCompleted ElicitationResult
    WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged DirectoryAdded MessageDisplay
"""
OTHER_EVENTS = frozenset(_OTHER_EVENTS.split())
"""Moments of Claude Code that Treadle does not have."""

_OTHER_KINDS = ("prompt", "agent", "mcp_tool")
_NAMES = regex(r"[A-Za-z0-9_\- ,|]*")
_NO_GROUP = "\0"
"""Stands in a group of merged settings for one that is none, with what is wrong. No settings file has such a name."""

_DEFAULT_SECONDS = 600.0
_SECONDS = {HookEvent.USER_PROMPT_SUBMIT: 30.0, HookEvent.SESSION_START: 60.0, HookEvent.SESSION_END: 1.5}
_MOST_SECONDS = {HookEvent.SESSION_END: 3.0}
"""A session that ends may be one that the system wants gone."""


class HookOrigin(StrEnum):
    """Whose hook it is: the user's, that of a folder, or that of the program that drives the session."""

    USER = "user"
    FOLDER = "folder"
    HOST = "host"


class HookSpec(Record, frozen=True, kw_only=True):
    """One handler of a settings file. `timeout` is seconds, `file` where it is written.

    `condition` is a permission rule (`if`) that a call must match besides the matcher. With `detached` (`async`) nobody
    waits for it. `problem` says why Treadle cannot run it, empty where it can; where it decides it then blocks. `place`
    is the entry in the file, such as `hooks.Stop[1]`.
    """

    event: str
    matcher: str = ""
    kind: str = "command"
    command: str = ""
    arguments: tuple[str, ...] | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    allowed_variables: tuple[str, ...] = ()
    timeout: float = _DEFAULT_SECONDS
    on_failure: str = ""
    condition: str = ""
    once: bool = False
    detached: bool = False
    confined: bool = True
    origin: HookOrigin = HookOrigin.USER
    file: str = ""
    problem: str = ""
    place: str = ""

    @property
    def says(self) -> str:
        """What it runs, in one line."""
        words = (self.command, *(self.arguments or ()))
        return self.url or " ".join(" ".join(words).split()) or (self.place if self.kind == "command" else self.kind)

    @property
    def policy(self) -> bool:
        """Whether something waits for its word that it can forbid."""
        return self.event in POLICY_EVENTS


def seconds_of(event: str, said: float | None = None) -> float:
    """Give how many seconds a hook of an event has; `said` is what it says itself."""
    known = HookEvent(event) if event in _EVENTS else HookEvent.NOTIFICATION
    seconds = _SECONDS.get(known, _DEFAULT_SECONDS) if said is None else said
    return min(seconds, _MOST_SECONDS.get(known, seconds))


def named_exactly(matcher: str) -> tuple[str, ...] | None:
    """Give the names of a matcher that is a list of them; None for one that is a regular expression."""
    if not _NAMES.fullmatch(matcher):
        return None
    return tuple(name for part in matcher.split("|") for one in part.split(",") if (name := one.strip()))


class _Given(Record, frozen=True, kw_only=True):
    """What all handlers of an event, or of a group, have in common."""

    event: str
    origin: HookOrigin
    file: str
    place: str
    matcher: str = ""
    problem: str = ""

    def wrong(self, problem: object, on_failure: object = "") -> HookSpec:
        """Stand for an entry that cannot be used: it blocks what it would judge; where that is unknown, all."""
        return HookSpec(
            event=self.event,
            matcher=self.matcher,
            on_failure="continue" if on_failure == "continue" else "",
            origin=self.origin,
            file=self.file,
            place=self.place,
            problem=str(problem),
        )


def hook_specs(table: Any, *, origin: HookOrigin, file: str, own: bool) -> Iterator[HookSpec]:
    """Read a table of hooks: event, groups with a matcher, handlers. Raises `ValueError` for what is no table.

    A wrong entry has a `problem`. In a file that is Treadle's `own` an unknown event is a mistake; elsewhere it may be
    one of a newer program. A group of merged settings says itself where it comes from (`origin`) and whether it is of
    the workspace (`of_workspace`).
    """
    for said, groups in _table(table, "hooks").items():
        event, problem = _event(str(said), own=own)
        for number, group in enumerate(groups if isinstance(groups, list | tuple) else (groups,), 1):
            given = _Given(event=event, origin=origin, file=file, place=f"hooks.{said}[{number}]", problem=problem)
            if isinstance(group, Mapping):
                of = HookOrigin.FOLDER if group.get("of_workspace") is True else origin
                given = replace(given, origin=of, file=str(group.get("origin", file)))
            yield from _group_specs(groups, group, given)


def _group_specs(groups: Any, group: Any, given: _Given) -> Iterator[HookSpec]:
    try:
        _sequence(groups, given.place.partition("[")[0])
        entry = _table(group, given.place)
        if _NO_GROUP in entry:
            raise ValueError(entry[_NO_GROUP])
        matcher = _text(entry, "matcher", given.place)
        _check_matcher(matcher, given.place)
        given = replace(given, matcher=matcher)
        handlers = _sequence(entry.get("hooks"), f"{given.place}.hooks")
    except ValueError as error:
        yield given.wrong(given.problem or error)
        return
    for handler in handlers:
        try:
            yield _spec(_table(handler, f"{given.place}.hooks"), given)
        except ValueError as error:
            said = handler.get("onFailure") if isinstance(handler, Mapping) else ""
            yield given.wrong(given.problem or error, said)


def all_hooks(layers: Iterable[tuple[str, Mapping[str, Any], bool]]) -> dict[str, list[Mapping[str, Any]]]:
    """Put the hooks of layers together: their origins, values, and whether they are of the workspace.

    Each group says its place; one layer cannot take another's hooks away, with a wrong entry neither.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for origin, values, of_workspace in layers:
        said = {"origin": origin, "of_workspace": of_workspace}
        for event, groups in values.get("hooks", {}).items():
            listed = groups if isinstance(groups, list | tuple) else [{_NO_GROUP: f"hooks.{event} is not a list"}]
            tables = (
                group if isinstance(group, Mapping) else {_NO_GROUP: f"hooks.{event}[{number}] is not a table"}
                for number, group in enumerate(listed, 1)
            )
            found.setdefault(event, []).extend({**group, **said} for group in tables)
    return found


def _event(said: str, *, own: bool) -> tuple[str, str]:
    """Give the event of a name, and what is wrong with the name; one that is nearly that of an event means it."""
    if said in _EVENTS:
        return said, ""
    near = [event for event in _EVENTS if event.casefold() == said.strip().casefold()]
    if own and said not in OTHER_EVENTS:
        near = near or get_close_matches(said, _EVENTS, n=1)
    if near:
        return near[0], f"Treadle has no event {said!r}; {near[0]} is probably meant"
    return said, "Treadle has no such moment"


def _check_matcher(matcher: str, place: str) -> None:
    if named_exactly(matcher) is not None or matcher == "*":
        return
    try:
        re.compile(matcher)
    except re.error as error:
        raise ValueError(f"{place}.matcher {matcher!r} is not a regular expression: {error}") from error


def _spec(handler: Mapping[str, Any], given: _Given) -> HookSpec:
    """Read one handler. Raises `ValueError`."""
    place = given.place
    kind = _text(handler, "type", place) or "command"
    on_failure = _text(handler, "onFailure", place)
    if on_failure not in ("", "block", "continue"):
        raise ValueError(f"{place}: onFailure is {on_failure!r}, but must be 'block' or 'continue'")
    confined = handler.get("confined", True) is not False
    spec = HookSpec(
        event=given.event,
        matcher=given.matcher,
        kind=kind,
        command=_text(handler, "command", place),
        arguments=_arguments(handler, place),
        url=_text(handler, "url", place),
        headers={str(key): str(value) for key, value in _table(handler.get("headers", {}), place).items()},
        allowed_variables=tuple(map(str, _sequence(handler.get("allowedEnvVars", ()), place))),
        timeout=seconds_of(given.event, _seconds(handler, place)),
        on_failure=on_failure,
        condition=_text(handler, "if", place),
        once=handler.get("once") is True,
        detached=handler.get("async") is True or handler.get("asyncRewake") is True,
        confined=confined or given.origin is HookOrigin.FOLDER,
        origin=given.origin,
        file=given.file,
        problem=given.problem,
        place=place,
    )
    _check_filled(spec, place)
    return spec if spec.problem else _with_problem(spec, _text(handler, "shell", place))


def _check_filled(spec: HookSpec, place: str) -> None:
    """Raise `ValueError` for a handler that does not say what to run."""
    if spec.kind == "command" and not spec.command.strip():
        raise ValueError(f"{place}: a command hook needs a command")
    if spec.kind == "http" and not spec.url.strip():
        raise ValueError(f"{place}: an http hook needs a url")


def _with_problem(spec: HookSpec, shell: str) -> HookSpec:
    problem = ""
    if spec.kind not in ("command", "http"):
        known = spec.kind in _OTHER_KINDS
        problem = f"Treadle does not run {spec.kind} hooks" if known else f"{spec.kind!r} is not a kind of hook"
    elif spec.kind == "http" and spec.origin is HookOrigin.FOLDER:
        problem = "a folder's hooks have no network"
    elif shell not in ("", "bash", "sh"):
        problem = f"Treadle does not run hooks in {shell}"
    return replace(spec, problem=problem)


def _arguments(handler: Mapping[str, Any], place: str) -> tuple[str, ...] | None:
    found = handler.get("args")
    return None if found is None else tuple(map(str, _sequence(found, f"{place}.args")))


def _seconds(handler: Mapping[str, Any], place: str) -> float | None:
    found = handler.get("timeout")
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < float("inf"):
        raise ValueError(f"{place}: timeout is {found!r}, but must be a number of seconds")
    return float(found)


def _table(found: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ValueError(f"{place} is not a table")  # noqa: TRY004 - a wrong setting, which callers expect as that
    return found


def _sequence(found: Any, place: str) -> Sequence[Any]:
    if not isinstance(found, list | tuple):
        raise ValueError(f"{place} is not a list")  # noqa: TRY004 - as above
    return found


def _text(table: Mapping[str, Any], name: str, place: str) -> str:
    found = table.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ValueError(f"{place}: {name} is not a string")  # noqa: TRY004 - as above
    return found
