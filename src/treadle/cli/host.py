"""Work for a host that drives Treadle over standard input and output, as the SDKs for Claude Code do."""

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from treadle.cli.host_flags import HostFlags
from treadle.cli.plain import flag_names
from treadle.cli.work import configure
from treadle.door.hosts import structured_answer
from treadle.door.known_models import EFFORT_BUDGETS
from treadle.door.opening import Opening, check_workspace, last_session, list_sessions, open_session, session_workspace
from treadle.door.past import end_of_entry
from treadle.door.program import Exit, own_stdout, print_notice
from treadle.door.settings import load_settings
from treadle.door.trust import session_trust, trusted_by_variable
from treadle.headless.channel import Channel
from treadle.headless.host_control import with_provider
from treadle.headless.host_questions import HOST_MODES, NOBODY
from treadle.headless.host_servers import host_servers
from treadle.headless.hosting import HostedSession, Hosting, SessionOpener
from treadle.headless.result_frames import unopened_frame
from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.shaping import Wishes
    from treadle.door.hosts import StructuredAnswer
    from treadle.door.open_session import LiveSession
    from treadle.door.opening import AgentFile
    from treadle.door.trust import SessionTrust
    from treadle.headless.host_start import HostStart

STREAM_JSON = "stream-json"
_STATE_VARIABLE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


def serve_host(words: Sequence[str]) -> int:
    """Work as a host's command line says; returns the exit code. Raises `TreadleError`."""
    flags = HostFlags(words)
    both = flags.get("input_format") == STREAM_JSON
    if flags.get("output_format") != STREAM_JSON or (not both and flags.get("input_format") not in (None, "text")):
        raise ConfigError(
            "host-format",
            "These formats do not go together.",
            why="--input-format stream-json is for programs that also read --output-format stream-json.",
            fix="Give both, or neither: treadle -p TASK --output-format stream-json",
        )
    if flags.unknown:
        _require_no_own(flags.unknown)
    for note in flags.notes:
        print_notice(note)
    return asyncio.run(_serve(flags, os.dup(0) if both else None))


def _require_no_own(unknown: Sequence[str]) -> None:
    """Raise `ConfigError` for a flag of Treadle's own that hosts lack: without it something else would be done."""
    names = flag_names(configure)
    own = next((one for one in unknown if one in names or (one[:2] in names and one[1:2] != "-")), "")
    if own:
        raise ConfigError(
            "host-flag",
            f"{own} does not go with --verbose or --input-format.",
            why="These are for hosts, programs that speak the protocol of Claude Code, and hosts have no such flag.",
            fix="Leave them out: treadle -p TASK --output-format stream-json",
        )


async def _serve(flags: HostFlags, source: int | None) -> int:
    channel = Channel(source, own_stdout())
    channel.start()
    try:
        hosted = _HostLine(flags).host(channel)
    except Exception as error:  # whatever it is, the host reads it
        channel.send(unopened_frame(error))
        await channel.close()
        raise
    with _Signals(hosted) as signals:
        try:
            return await hosted.run()
        except asyncio.CancelledError:
            if signals.code is None:
                raise
            return signals.code


class _Signals:
    """SIGINT interrupts the turn; SIGTERM, and SIGINT where there is none, end the program. The session is kept."""

    def __init__(self, hosted: HostedSession) -> None:
        self._hosted = hosted
        self._main = asyncio.current_task()
        self.code: Exit | None = None

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._end, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        live = self._hosted.live
        if live is None or not live.status.turn_active:
            self._end(signal.SIGINT)
        else:
            self._hosted.start(self._hosted.interrupt(live), "interrupt")

    def _end(self, number: signal.Signals) -> None:
        self.code = Exit(128 + number)
        if self._main is not None:
            self._main.cancel()


class _HostLine:
    """What a host's command line means: who answers, and how the session is opened."""

    def __init__(self, flags: HostFlags) -> None:
        self._flags = flags
        self._settings_said = _settings_of(flags.get("settings"))
        self._mode = flags.get("permission_mode") or self._settings_said.get("permissions", {}).get("defaultMode")
        self._structured: StructuredAnswer | None = None
        if schema := flags.get("json_schema"):
            self._structured = structured_answer(schema)

    def host(self, channel: Channel) -> HostedSession:
        """Make the host's side of the session, which is not open yet."""
        flags = self._flags
        asks = flags.get("permission_prompt_tool") == "stdio"
        if flags.has("permission_prompt_tool") and not asks:
            print_notice("Only stdio can be a --permission-prompt-tool: what needs approval is denied.")
        hosting = Hosting(
            asks=asks,
            denies=self._mode == NOBODY,
            partial=flags.has("include_partial_messages"),
            replay=flags.has("replay_user_messages"),
            hook_events=flags.has("include_hook_events"),
            state_frames=os.environ.get(_STATE_VARIABLE) == "1",
            task=None if flags.get("input_format") == STREAM_JSON else self._task(),
            structured=self._structured,
        )
        return HostedSession(channel, hosting, SessionOpener(trust=self._trust, open=self._open), print_notice)

    def _task(self) -> str:
        said = self._flags.get("print") or next(iter(self._flags.words), "")
        task = sys.stdin.read() if said in ("", "-") else said
        if task.strip() or self._flags.has("resume") or self._flags.has("continue"):
            return task
        raise ConfigError(
            "task-empty", "The task is empty.", why="-p got no text.", fix='Say what to do: treadle -p "..."'
        )

    def _folder(self) -> Path:
        if self._flags.get("resume") == "":
            raise _wrong("resume", "It names no session. `treadle sessions` lists them; --continue takes the last.")

        if prefix := self._flags.get("resume"):
            return session_workspace(prefix)
        return check_workspace(Path(self._flags.get("directory") or "."))

    def _trust(self) -> "SessionTrust":

        trust = session_trust(self._folder(), once=self._flags.has("trust") or trusted_by_variable())
        sources = self._flags.get("setting_sources")
        if sources is None or "project" in sources.split(","):
            return trust
        return replace(trust, once=False, problem="--setting-sources leaves the project out.")

    async def _open(self, trust: "SessionTrust", host: HostedSession) -> "LiveSession":
        flags, said = self._flags, self._said()
        if "model" in said or "fallback" in said:
            known = load_settings({}).model
            said |= {name: with_provider(said[name], known) for name in ("model", "fallback") if name in said}
        settings = load_settings(said, workspace=trust.workspace, trusted=trust.trusted)
        if hooks := self._settings_said.get("hooks"):
            from treadle.door.hosts import with_hooks_said

            settings = with_hooks_said(settings, hooks, "--settings")
        if host.hosting.asks:
            # Who asks about a command wants to be asked before it runs.
            settings = replace(settings, try_first=False)
        from treadle.headless.host_hooks import host_hooks

        start = host.began
        wishes = self._wishes(start)
        servers = host_servers(flags.all("mcp_config"), wishes.server_tools(), start)
        for note in servers.notes:
            print_notice(note)
        resume = flags.get("resume") or (last_session(trust.workspace) if flags.has("continue") else "")
        if at := flags.get("resume_session_at"):
            if not resume:
                raise _wrong("resume-session-at", "It needs --resume or --continue.")

            host.goes_back_to = end_of_entry(resume, at, flags.get("resume_drops_turn"))
        if resume and flags.has("fork_session"):
            from treadle.door.past import copy_whole

            resume = copy_whole(resume)
        return await open_session(
            wishes.shaped(
                Opening(
                    workspace=trust.workspace,
                    settings=settings,
                    user_present=host.present,
                    given=frozenset(said),
                    resume=resume,
                    one_task=host.hosting.task is not None,
                    trust=trust,
                    hooks=host_hooks(host) if start.hooks else (),
                    servers=servers.servers,
                    only_servers=flags.has("strict_mcp_config"),
                    exchanges=servers.exchanges(host.channel),
                    agents=_agents(flags.all("agents"), start.agents),
                    session_id="" if resume else _session_id(flags.get("session_id")),
                )
            )
        )

    def _wishes(self, start: "HostStart") -> "Wishes":
        """Give what was said of the tools and of the prompt."""
        from treadle.cli.shaping import Wishes

        flags, permissions = self._flags, self._settings_said.get("permissions", {})
        append = flags.get("append_system_prompt") or _text_of(flags.get("append_system_prompt_file"))
        return Wishes(
            allowed=(*flags.all("allowed_tools"), *_list(permissions, "allow")),
            disallowed=(*flags.all("disallowed_tools"), *_list(permissions, "deny"), *start.denied),
            only=flags.get("tools"),
            system=flags.get("system_prompt") or _text_of(flags.get("system_prompt_file")) or start.system,
            append=append or start.append,
            structured=self._structured,
        )

    def _said(self) -> dict[str, Any]:
        """Give the settings that the command line names."""
        flags = self._flags
        said: dict[str, Any] = {
            name: value
            for name, flag in (
                ("model", "model"),
                ("fallback", "fallback_model"),
                ("mode", "mode"),
                ("base_url", "base_url"),
                ("tool_protocol", "tool_protocol"),
            )
            if (value := flags.get(flag))
        }
        if self._mode and "mode" not in said:
            said["mode"] = _mode(self._mode)
        numbers = {
            "max_steps": _number(flags, "max_turns", int),
            "max_seconds": _number(flags, "max_seconds", float),
            "thinking_budget": self._thinking(),
        }
        said |= {name: value for name, value in numbers.items() if value is not None}
        budget = {
            "session_cost": _number(flags, "max_budget_usd", float),
            "session_tokens": _number(flags, "max_tokens", int),
        }
        budget = {name: value for name, value in budget.items() if value is not None}
        if budget:
            # A part of it being spent is nothing to ask a host about.
            said["budget"] = {**budget, "ask_at": 1.0}
        if folders := flags.all("add_dir"):
            said["add_dirs"] = tuple(os.path.abspath(os.path.expanduser(folder)) for folder in folders)  # noqa: PTH100, PTH111
        return said

    def _thinking(self) -> Any:
        if self._flags.get("thinking") == "disabled":
            return 0
        if effort := self._flags.get("effort"):
            return EFFORT_BUDGETS.get(effort, EFFORT_BUDGETS["high"])
        return _number(self._flags, "max_thinking_tokens", int)


def _mode(name: str) -> str:
    if name not in HOST_MODES:
        raise _wrong("permission-mode", f"{name!r} is none of {', '.join(HOST_MODES)}.")
    return HOST_MODES[name].value


def _number(flags: HostFlags, name: str, kind: type[int] | type[float]) -> Any:
    text = flags.get(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError as error:
        raise _wrong(name.replace("_", "-"), f"{text!r} is not a number.") from error


def _session_id(text: str | None) -> str:
    """Check the id that a new session is to have."""
    if text is None:
        return ""
    try:
        wanted = str(uuid.UUID(text))
    except ValueError as error:
        raise _wrong("session-id", f"{text!r} is not a UUID.") from error
    if any(row.id == wanted for row in list_sessions(None)):
        raise _wrong("session-id", "There is a session with this id already. --resume continues it.")
    return wanted


def _json_object(text: str, flag: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(flag, f"It is not JSON ({error}).") from error
    if not isinstance(found, dict):
        raise _wrong(flag, "It is not a JSON object.")
    return found


def _settings_of(said: str | None) -> Mapping[str, Any]:
    """Read settings of Claude Code, given as a file or as JSON."""
    if not said:
        return {}
    text = said if said.lstrip().startswith("{") else _text_of(said)
    settings = _json_object(text, "settings")
    unused = sorted(set(settings) - {"permissions", "hooks"})
    if unused:
        print_notice(f"Not used of --settings: {', '.join(unused)}.")
    permissions = settings.get("permissions")
    permissions = permissions if isinstance(permissions, dict) else {}
    mode = permissions.get("defaultMode")
    if mode is not None and not isinstance(mode, str):
        raise _wrong("settings", f"permissions.defaultMode cannot be {mode!r}.")
    return {"permissions": permissions, "hooks": settings.get("hooks")}


def _list(permissions: Mapping[str, Any], name: str) -> list[str]:
    said = permissions.get(name)
    return [one for one in said if isinstance(one, str)] if isinstance(said, list) else []


def _text_of(file: str | None) -> str:
    if not file:
        return ""
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, RuntimeError) as error:  # RuntimeError: no home for ~NAME
        raise _wrong("file", str(error)) from error


def _wrong(flag: str, why: str) -> ConfigError:
    return ConfigError(
        "host-flag", f"The flag --{flag} cannot be used as it was given.", why=why, fix="Correct it, or leave it out."
    )


def _agents(files: Sequence[str], said: Mapping[str, Any]) -> "tuple[AgentFile, ...]":
    """Read the agents of the command line, in files or as JSON, and of the host. Raises `ConfigError`."""
    from treadle.door.opening import read_agent_file, said_agents

    found: list[AgentFile] = []
    for one in files:
        if one.lstrip().startswith("{"):
            found += said_agents(_json_object(one, "agents"))
            continue
        agent, notices = read_agent_file(Path(one))
        found.append(agent)
        for notice in notices:
            print_notice(notice)
    return (*found, *said_agents(said))
