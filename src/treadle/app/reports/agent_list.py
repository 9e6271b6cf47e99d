"""The agents that a session can use, and the subagents that it had."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from treadle.app.reports.known_sessions import listed_sessions
from treadle.app.security.trusting import SessionTrust
from treadle.app.subagents.agent_files import built_in_agents, read_agents, same_name
from treadle.protocol.attach import ListedAgent
from treadle.workspace.files.text import visible

_LONGEST = 80


def listed_agents(trust: SessionTrust, given: Sequence[ListedAgent]) -> tuple[dict[str, ListedAgent], tuple[str, ...]]:
    """Give the agents that a session can use, by name, and what of their files is not used; those `given` go first."""
    files, notices = read_agents(trust, Path.home())
    agents = {**{name: one.listed for name, one in files.items()}, **{one.name: one for one in given}}
    hidden = [one for name, one in files.items() if agents[name] != one.listed and one != built_in_agents().get(name)]
    return agents, (*notices, *(same_name(one.origin, agents[one.name]) for one in hidden))


def agents_text(trust: SessionTrust, session_id: str, given: Sequence[ListedAgent] = ()) -> str:
    """List the agents with what each may do, what of their files is not used, and the session's subagents."""
    agents, notices = listed_agents(trust, given)
    lines = ["Agents:", *(f"  {_agent(one)}" for one in agents.values()), *(f"  {notice}" for notice in notices)]
    begun = list(_subagents(trust.workspace, session_id))
    return visible("\n".join([*lines, *(["Subagents of this session:", *begun] if begun else [])]))


def _agent(agent: ListedAgent) -> str:
    writes = "may write" if agent.writes else "reads"
    return f"{agent.name} ({writes}, {agent.origin}): {_short(agent.description)}"


def _subagents(workspace: Path, session_id: str) -> Iterator[str]:
    rows = [row for row in listed_sessions(workspace, subagents=True) if row.root == session_id]
    for row in reversed(rows):
        state = row.outcome or "works"
        yield f"  {row.id}  {row.agent}, {state}, {row.spending.words}: {_short(row.title)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
