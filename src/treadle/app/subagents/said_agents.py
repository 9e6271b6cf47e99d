"""Agents that a host says itself: a JSON object by their names, as the SDKs of Claude Code send it."""

import json
from collections.abc import Mapping
from typing import Any

from treadle.app.subagents.agent_files import AgentFile, agent_of

_ORIGIN = "the host"


def said_agents(said: Mapping[str, Any]) -> tuple[AgentFile, ...]:
    """Read agents as if each stood in a file with the same fields: what narrows one there narrows it here.

    Raises `ConfigError` for one that cannot be used: without it the host's words would mean another agent, or none.
    """
    return tuple(agent_of(_as_file(name, one), f"the agent {name} of {_ORIGIN}", name)[0] for name, one in said.items())


def _as_file(name: str, said: Any) -> bytes:
    fields = said if isinstance(said, dict) else {}
    header = {"name": name, **{key: value for key, value in fields.items() if key != "prompt" and value is not None}}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    return "\n".join(("---", *lines, "---", str(fields.get("prompt", "")))).encode()
