"""Agents: Markdown files that say what a subagent is for and what it may use, as five programs write them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from treadle.app.config.places import read_regular, user_agent_folders
from treadle.app.prompts import agent_prompt
from treadle.app.security.trusting import SessionTrust, trust_command
from treadle.app.subagents.agent_tools import AgentTools, agent_tools, may_write
from treadle.context.frontmatter import Header, read_header
from treadle.mcp.declaring import slug_of
from treadle.policy.decide import SERVER_TOOLS
from treadle.policy.marks import fits_glob
from treadle.protocol.attach import ListedAgent
from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Mode
from treadle.store.activation import AGENT_FOLDERS, ActiveFile, ActiveKind
from treadle.store.active_items import read_item
from treadle.tools import declarations
from treadle.workspace.files.names import shown_name
from treadle.workspace.files.walking import walk

CHEAPER = "cheaper"
"""The word in `model` for the cheaper model, where one is configured; else it is the parent's."""

FOREIGN_NAMES: Mapping[str, str] = {"Explore": "explore", "Plan": "explore", "general-purpose": "worker"}
"""The agents here that do the work of those which Claude Code has built in (November 2026)."""

_LOOKING = (
    *(declarations.READ_FILE, declarations.SEARCH_FILES, declarations.LIST_FILES),
    *(declarations.LIST_CODE_DEFINITION_NAMES, declarations.WEB_FETCH),
    *(declarations.EXECUTE_COMMAND, declarations.READ_COMMAND_OUTPUT),
)
"""What `explore` may use; in the mode plan no command changes anything."""

_LARGEST = 131_072
"""Bytes of an agent's file."""

_MOST_FILES = 500
_DEEPEST = 5
_MOST_STEPS = 1_000
_MOST_MINUTES = 24 * 60.0
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,4}")
_MODES: Mapping[str, Mode] = {
    "plan": Mode.PLAN,
    "default": Mode.ASK,
    "acceptEdits": Mode.EDITS,
    "bypassPermissions": Mode.FULL,
    "auto": Mode.AUTO,
    "dontAsk": Mode.ASK,
}
_FIELDS = frozenset(
    [
        *("name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "max_turns"),
        *("skills", "effort", "timeout_mins", "background", "kind", "permission", "mcpServers", "context"),
    ]
)
_OPENCODE_FIELDS = frozenset({"mode", "disable", "steps", "maxSteps"})
_STEPS = ("maxTurns", "max_turns", "steps", "maxSteps")


class AgentFile(Struct, frozen=True, kw_only=True):
    """One agent. `prompt` is the system prompt of the child, `origin` its file's path as it is shown.

    `tools` are names of built-in tools here and globs of servers' tools (None: all that the parent has), and `without`
    is left out of them; what ends a turn is in neither. `model` is as written: empty for the parent's, a full name or
    an alias such as `sonnet`, `CHEAPER`. `mode` is what the agent asks for, never more than the parent's in force.
    `writes`: it may change files by tools of ours; what a server's tool does is not known. `servers` are globs of all
    tools of the servers that it names (None: it names none). `unknown` are fields of the file that mean nothing here.
    `seconds` bounds its time, `max_steps` its steps. A `fork` begins with the conversation of its parent, and its
    `prompt` stands in its first message.
    """

    name: str
    description: str
    prompt: str
    origin: str
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    max_steps: int | None = None
    skills: tuple[str, ...] = ()
    effort: str = ""
    seconds: float | None = None
    background: bool = False
    fork: bool = False
    writes: bool = True
    servers: tuple[str, ...] | None = None
    unknown: tuple[str, ...] = ()

    @property
    def listed(self) -> ListedAgent:
        """Give what lists say of it."""
        return ListedAgent(name=self.name, description=self.description, origin=self.origin, writes=self.writes)

    @property
    def of_servers(self) -> tuple[str, ...] | None:
        """Give globs of the tools of servers that it may use; None is all, as `without` leaves them."""
        if self.tools is None:
            return self.servers
        named = tuple(one for one in self.tools if one.startswith(SERVER_TOOLS))
        if self.servers is None:
            return named
        return (
            tuple(one for one in named if any(fits_glob(own, one) for own in self.servers)) if named else self.servers
        )


class _Found(Struct, frozen=True, kw_only=True):
    """A file that may be an agent; `below` is its path in the folder of agents, `content` None where it has no use."""

    origin: str
    below: str
    opencode: bool
    content: bytes | None


class _UnusableError(Exception):
    """Why a file is no agent that can be used."""


def read_agents(
    trust: SessionTrust, home: Path, user_folders: Sequence[Path] | None = None
) -> tuple[dict[str, AgentFile], tuple[str, ...]]:
    """Read the agents of a folder, if it is trusted, then the user's, then the built-in ones; of two the first counts.

    Gives them by name, and what is to be told of the files: a line for each thing that is not used, and why. Without
    `user_folders` the user's are those of `user_agent_folders`.
    """
    agents: dict[str, AgentFile] = {}
    notices: list[str] = []
    if not trust.trusted and any(item.kind is ActiveKind.AGENT for item in trust.items):
        notices.append(f"The agents of this folder are not used: see `{trust_command(trust.workspace)}`.")
    folders = tuple(map(Path, user_agent_folders(str(home)))) if user_folders is None else user_folders
    for found in (*_folder_files(trust), *(one for folder in folders for one in _user_files(folder, home))):
        try:
            agent = _read(found, notices)
        except _UnusableError as why:
            notices.append(f"{found.origin} is not used: {why}")
            continue
        first = agents.setdefault(agent.name, agent)
        if first is not agent:
            notices.append(same_name(found.origin, first.listed))
    return {**agents, **{name: one for name, one in built_in_agents().items() if name not in agents}}, tuple(notices)


def same_name(origin: str, first: ListedAgent) -> str:
    """Say that a file is not used because of an agent that counts before it."""
    return f"{origin} is not used: {first.origin} has the same name, {first.name}."


def read_agent_file(path: Path) -> tuple[AgentFile, tuple[str, ...]]:
    """Read one file that the user names, as `--agents FILE.md` does; gives also what is to be told of it.

    Raises `ConfigError` where it is no agent that can be used.
    """
    opencode = _of_opencode(path.absolute().parent)
    return agent_of(_content(path), shown_name(str(path)), path.name, opencode=opencode)


def agent_of(
    content: bytes | None, origin: str, below: str, *, opencode: bool = False
) -> tuple[AgentFile, tuple[str, ...]]:
    """Read what a file has, or would have; see `read_agent_file`."""
    notices: list[str] = []
    try:
        return _read(_Found(origin=origin, below=below, opencode=opencode, content=content), notices), tuple(notices)
    except _UnusableError as why:
        raise ConfigError(
            "agent-file",
            f"{origin} cannot be used as an agent.",
            why=str(why),
            fix="It is Markdown with a header that has a name and a description; docs/agents.md shows one.",
        ) from why


def built_in_agents() -> dict[str, AgentFile]:
    """Give the agents that are there without a file: `explore` only reads, `worker` writes, `fork` knows more."""
    explore = AgentFile(
        name="explore",
        description="Reads and searches the project to answer one question. Changes nothing.",
        prompt=agent_prompt("explore"),
        origin="Treadle",
        tools=tuple(spec.name for spec in _LOOKING),
        model=CHEAPER,
        mode=Mode.PLAN,
        writes=False,
    )
    worker = AgentFile(
        name="worker",
        description="Does one task in a copy of the project; its changes are reviewed and merged.",
        prompt=agent_prompt("worker"),
        origin="Treadle",
    )
    fork = AgentFile(
        name="fork",
        description="Begins with this conversation, so it knows all of it; reads, and changes nothing.",
        prompt=agent_prompt("fork"),
        origin="Treadle",
        mode=Mode.PLAN,
        fork=True,
        writes=False,
    )
    return {one.name: one for one in (explore, worker, fork)}


def _folder_files(trust: SessionTrust) -> Iterator[_Found]:
    items = [item for item in trust.items if item.kind is ActiveKind.AGENT] if trust.trusted else []
    for folder in AGENT_FOLDERS:
        for item in items:
            if item.path.casefold().startswith(f"{folder}/") and not _is_readme(item.path):
                yield _Found(
                    origin=shown_name(item.path),
                    below=item.path[len(folder) + 1 :],
                    opencode=folder.startswith(".opencode/"),
                    content=_trusted_content(trust.workspace, item),
                )


def _trusted_content(workspace: Path, item: ActiveFile) -> bytes | None:
    """Read a file exactly as it was trusted; what leads out of the folder is not."""
    inside = Path(os.path.realpath(workspace / item.path)).is_relative_to(workspace)
    return read_item(workspace, item) if inside else None


def _user_files(folder: Path, home: Path) -> Iterator[_Found]:
    in_home = folder.is_relative_to(home)
    shown = f"~/{shown_name(str(folder.relative_to(home)))}" if in_home else shown_name(str(folder))
    for file in islice(_files_in(folder), _MOST_FILES):
        below = file.relative_to(folder).as_posix()
        yield _Found(
            origin=f"{shown}/{shown_name(below)}",
            below=below,
            opencode=_of_opencode(folder),
            content=_content(file),
        )


def _files_in(folder: Path) -> Iterator[Path]:
    """Find the files in the order of their names; links to folders are not followed."""
    for place, folders, files in walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _DEEPEST else []
        yield from (
            Path(place, name) for name in sorted(files) if name.lower().endswith(".md") and not _is_readme(name)
        )


def _content(file: Path) -> bytes | None:
    try:
        return read_regular(file, _LARGEST)
    except OSError:
        return None


def _is_readme(path: str) -> bool:
    return path.casefold().rpartition("/")[2] == "readme.md"


def _of_opencode(folder: Path) -> bool:
    """Whether files in a folder are OpenCode's: there the name of an agent is that of its file."""
    return any(part in (".opencode", "opencode") for part in folder.parts[-2:])


def _read(found: _Found, notices: list[str]) -> AgentFile:
    """Read one file; adds to the notices. Raises `_UnusableError`."""
    header = _header(found)
    name, description = _who(found, header)
    told: list[str] = []
    tools = agent_tools(header)
    mode = _mode(header, tools, told)
    known = _FIELDS | _OPENCODE_FIELDS if found.opencode else _FIELDS
    unknown = tuple(field for field in header.values if field not in known)
    if found.opencode and header.text("name") not in ("", name):
        unknown = (*unknown, "name")
    if unknown:
        told.append(f"fields that mean nothing here: {', '.join(map(shown_name, unknown))}")
    agent = AgentFile(
        name=name,
        description=description,
        prompt=header.body.strip(),
        origin=found.origin,
        tools=tools.tools,
        without=tools.without,
        model="" if header.text("model") == "inherit" else header.text("model"),
        mode=mode,
        max_steps=_steps(header, told),
        skills=header.listed("skills") or (),
        effort=header.text("effort"),
        seconds=_seconds(header, told),
        background=header.truth("background"),
        fork=_forks(header, told),
        writes=mode is not Mode.PLAN and may_write(tools.tools, tools.without),
        servers=_servers(header, told),
        unknown=unknown,
    )
    notices += [f"{found.origin}: {one}." for one in (*tools.notes, *told)]
    return agent


def _forks(header: Header, told: list[str]) -> bool:
    """Whether an agent begins with the conversation of its parent, as `context: fork` says."""
    said = header.text("context")
    if said not in ("", "fork"):
        told.append(f"context: {shown_name(said)} means nothing here; `fork` is known")
    return said == "fork"


def _header(found: _Found) -> Header:
    content = found.content
    if content is None:
        raise _UnusableError("it cannot be read, is not a file, leads out of the folder, or is not as you trusted it.")
    if len(content) > _LARGEST:
        raise _UnusableError(f"it has more than {_LARGEST:,} bytes.")
    if b"\0" in content:
        raise _UnusableError("it is not text in UTF-8.")
    header = read_header(content.decode("utf-8-sig", errors="replace"))
    if header.problem:
        # What cannot be read may be what narrows the agent: it would have more than its author meant.
        raise _UnusableError(f"{header.problem[0].lower()}{header.problem[1:]}")
    if not header.values:
        raise _UnusableError("it has no header with a name and a description.")
    if not header.body.strip():
        raise _UnusableError("it has no text below its header, which would be the agent's prompt.")
    return header


def _who(found: _Found, header: Header) -> tuple[str, str]:
    """Give the name and the description. Raises `_UnusableError` where one is missing, or it is no subagent."""
    name = str(PurePosixPath(found.below).with_suffix("")) if found.opencode else header.text("name").strip()
    if not name:
        raise _UnusableError("its header has no name.")
    if not _NAME.fullmatch(name):
        raise _UnusableError(f"its name {shown_name(name)!r} is not letters, digits, hyphens, dots and underscores.")
    description = " ".join(header.text("description").split())
    if not description:
        raise _UnusableError("its header has no description.")
    if header.text("kind") not in ("", "local"):
        raise _UnusableError(f"its kind is {shown_name(header.text('kind'))}, and only local agents run here.")
    if found.opencode and header.text("mode") not in ("", "subagent", "all"):
        raise _UnusableError(f"its mode is {shown_name(header.text('mode'))}, so it is no subagent.")
    if found.opencode and header.truth("disable"):
        raise _UnusableError("it is disabled.")
    return name, description


def _mode(header: Header, tools: AgentTools, told: list[str]) -> Mode | None:
    said = header.text("permissionMode")
    mode = _MODES.get(said)
    if said and mode is None:
        told.append(f"its permissionMode {shown_name(said)} is not known, so it asks as in the mode ask")
        return Mode.ASK
    if tools.asks and mode not in (Mode.PLAN, Mode.ASK):
        return Mode.ASK
    return mode


def _servers(header: Header, told: list[str]) -> tuple[str, ...] | None:
    """Read which servers of the session it uses; one that the file itself defines is not started."""
    if "mcpServers" not in header.values and "mcpServers" not in header.maps:
        return None
    names = header.listed("mcpServers") or ()
    if not names or "mcpServers" in header.maps:
        told.append("servers that it defines are not started: it can name those of the session in mcpServers")
    return tuple(f"{SERVER_TOOLS}{slug_of(name, {})}__*" for name in names)


def _steps(header: Header, told: list[str]) -> int | None:
    for field in _STEPS:
        said = header.text(field)
        if said.isascii() and said.isdigit() and 1 <= int(said[:9]) <= _MOST_STEPS:
            return int(said)
        if said:
            told.append(f"its {field} is not a number from 1 to {_MOST_STEPS:,}, so the usual limit applies")
    return None


def _seconds(header: Header, told: list[str]) -> float | None:
    said = header.text("timeout_mins")
    try:
        minutes = float(said) if said else None
    except ValueError:
        minutes = 0.0
    if minutes is None:
        return None
    if not 0 < minutes <= _MOST_MINUTES:
        told.append(f"its timeout_mins is not a number up to {_MOST_MINUTES:.0f}, so the usual limit applies")
        return None
    return minutes * 60
