"""The tools as a list for a person: what each is judged as, and whether a model is told of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from treadle.app.config.places import database
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.offering import (
    ANSWERED,
    NO_NOTEBOOKS,
    has_notebooks,
    left_out,
    left_out_now,
    out_of_session,
)
from treadle.app.session.own_tools import own_tools
from treadle.app.session.rules.prompting import load_skills
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.tools import ToolSpec
from treadle.store.sqlite import Store
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace


class ToolLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One tool. `risk` is that of a call that names nothing it touches; otherwise what it touches is judged."""

    name: str
    origin: str
    kind: str
    risk: str
    effect: str
    offered: bool
    why_not: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The tools in the order in which `model` (empty where none is set up) is told of them, and what was left out."""

    model: str
    tools: Sequence[ToolLine]
    problems: Sequence[str]


def list_tools(settings: Settings, trust: SessionTrust) -> ToolList:
    """List the tools that a session with these settings would have in a folder."""
    model, skills = _model(settings), load_skills(trust)
    built_in = [tool.spec for tool in builtin_tools(open_workspace(trust.workspace))]
    own = own_tools([spec.name for spec in built_in])
    store = Store(database())
    try:
        always_out = out_of_session(settings, skills=skills is not None and skills.callable)
        now_out = left_out_now(replace(ANSWERED, mode=settings.mode))
        reasons = {**left_out(model, store), **always_out, **now_out}
        if not has_notebooks(str(trust.workspace)):
            reasons |= NO_NOTEBOOKS
    finally:
        store.close()
    lines = [_line(spec, "built in", reasons.get(spec.name, "")) for spec in built_in]
    lines += [_line(tool.spec, "installed", reasons.get(tool.spec.name, "")) for tool in own.tools]
    return ToolList(model=model, tools=lines, problems=own.problems)


def find_tool(tools: ToolList, name: str) -> ToolLine:
    """Find a tool by its name; raises `ConfigError`."""
    for line in tools.tools:
        if line.name == name:
            return line
    from difflib import get_close_matches

    near = get_close_matches(name, [line.name for line in tools.tools], n=3)
    raise ConfigError(
        "tool-unknown",
        f"There is no tool {name}.",
        fix=f"Did you mean {' or '.join(near)}?" if near else "`treadle tools` lists them.",
    )


def _line(spec: ToolSpec, origin: str, why_not: str) -> ToolLine:
    return ToolLine(
        name=spec.name,
        origin=origin,
        kind=spec.traits.kind.value,
        risk=spec.risk.value,
        effect=spec.traits.effect.value,
        offered=not why_not,
        why_not=why_not,
        description=spec.description,
        parameters=spec.parameters,
    )


def _model(settings: Settings) -> str:
    """Name the model that a session would begin with; empty where none is set up, and then any is meant."""
    try:
        return Models(settings).choose().spec.ref
    except ConfigError:
        return settings.model
