"""What the arguments of the main command say: its settings, the task, the folder, and what is opened."""

import sys
from pathlib import Path

from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Any

    from treadle.door.opening import AgentFile, Opening
    from treadle.door.trust import SessionTrust
    from treadle.protocol.goals import SetGoal
    from treadle.protocol.messages import UserContent

WISHES = ("allowed_tools", "disallowed_tools", "system_prompt", "append_system_prompt", "json_schema")
"""Flags for tasks that nobody sits at; what reads them is loaded with the first one."""

_SETTINGS = (
    "model",
    "base_url",
    "profile",
    "mode",
    "tool_protocol",
    "fallback",
    "thinking_budget",
    "max_steps",
    "max_seconds",
)
"""Flags of the same name as the setting."""


def flags(arguments: "argparse.Namespace") -> "Mapping[str, Any]":
    """Give the settings that were said on the command line."""
    said = {name: getattr(arguments, name) for name in _SETTINGS if getattr(arguments, name) is not None}
    budget = {"session_cost": arguments.max_cost, "session_tokens": arguments.max_tokens}
    budget = {name: value for name, value in budget.items() if value is not None}
    said |= {name: True for name in ("screen_reader", "wait_for_reset") if getattr(arguments, name, None)}
    if arguments.add_dirs:
        said["add_dirs"] = tuple(str(folder.expanduser().absolute()) for folder in arguments.add_dirs)
    return {**said, "budget": budget} if budget else said


def task_from(said: str, arguments: "argparse.Namespace", *, flag: str = "-p") -> str:
    """Give the task that a flag says, `-` for standard input; only for a session that goes on it may be empty."""
    text = sys.stdin.read() if said == "-" else said
    if text.strip() or arguments.resume or arguments.go_on:
        return text.strip()
    raise ConfigError(
        "task-empty",
        "The task is empty.",
        why="Standard input was empty." if said == "-" else f"{flag} got no text.",
        fix=f'Say what to do: treadle {flag} "..."',
    )


def task_content(arguments: "argparse.Namespace", task: str) -> "tuple[UserContent, ...]":
    """Give the task as a message: its text, and what goes along."""
    said = (Text(text=task),) if task else ()
    if not arguments.file:
        return said
    from treadle.door.message_parts import attach
    from treadle.door.program import harmless

    return (*said, *attach(arguments.file, lambda scaled: sys.stderr.write(f"{harmless(scaled)}\n")))


def session_trust_of(arguments: "argparse.Namespace") -> "SessionTrust":
    """Find the folder of the session, and the user's word on it as it was given before or for this run."""
    from treadle.door.opening import check_workspace, session_workspace
    from treadle.door.trust import session_trust, trusted_by_variable

    folder = session_workspace(arguments.resume) if arguments.resume else check_workspace(arguments.directory)
    trust = session_trust(folder, once=arguments.trust or trusted_by_variable())
    name = getattr(arguments, "copy", None)
    if name is None or arguments.resume:
        return trust
    from treadle.door.opening import named_copy_trust

    return named_copy_trust(name, trust, made=not getattr(arguments, "go_on", False))


def opening_of(arguments: "argparse.Namespace", trust: "SessionTrust", *, user_present: bool) -> "Opening":
    from treadle.door.opening import Opening, last_session
    from treadle.door.settings import load_settings

    given = flags(arguments)
    return Opening(
        workspace=trust.workspace,
        settings=load_settings(given, workspace=trust.workspace, trusted=trust.trusted),
        user_present=user_present,
        given=frozenset(given),
        resume=last_session(trust.workspace) if getattr(arguments, "go_on", False) else arguments.resume,
        trust=trust,
        agents=_agents(getattr(arguments, "agents", None) or ()),
        one_task=not user_present,
    )


def _agents(files: "Sequence[Path]") -> "tuple[AgentFile, ...]":
    if not files:
        return ()
    from treadle.door.opening import read_agent_file
    from treadle.door.program import print_notice

    read = [read_agent_file(file) for file in files]
    for notice in (notice for _, notices in read for notice in notices):
        print_notice(notice)
    return tuple(agent for agent, _ in read)


def goal_of(arguments: "argparse.Namespace") -> "SetGoal | None":
    """Give the goal of the command line. Raises `ConfigError` for a check without one, and where none can be set."""
    said, by = getattr(arguments, "goal", None), getattr(arguments, "check", None)
    if said is None and by is None:
        return None
    goal, check = (said or "").strip(), (by or "").strip()
    if not goal or (by is not None and not check):
        raise ConfigError(
            "goal-flag",
            "--goal needs a condition, and --check a command.",
            why="A session works on until the condition of its goal is met.",
            fix="Use: treadle -p TASK --goal 'all tests pass' --check 'make test'",
        )
    if arguments.attach != "":
        raise ConfigError(
            "goal-flag",
            "--goal does not go with --attach.",
            why="It joins a session that is open elsewhere, which may have a goal of its own.",
            fix="Attach, and set it there: /goal --check 'make test' all tests pass",
        )
    from treadle.protocol.goals import SetGoal

    return SetGoal(condition=goal, check=check)


def opening_for(arguments: "argparse.Namespace", folder: Path) -> "Opening":
    """Open a new session in a folder, without a person, as the arguments say otherwise."""
    arguments.directory, arguments.resume = folder, ""
    return opening_of(arguments, session_trust_of(arguments), user_present=False)
