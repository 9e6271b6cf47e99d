"""What is different in a subagent: its words, its tools, and that it may never do more than who began it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from treadle.app.session.children.renaming import IN_SAME_FOLDER, Renaming
from treadle.app.session.shape import SessionShape
from treadle.engine.ports import Judge, Ports
from treadle.policy.decide import SERVER_TOOLS
from treadle.policy.marks import fits_glob
from treadle.policy.modes import granting
from treadle.protocol.permissions import Decision, Mode, Reason, Standing, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import Access, Confinement, ToolSpec
from treadle.tools.declarations import NEW_RULE, NEW_TASK, RUN_CODE, SET_TIMER, USE_SUBAGENTS

NOT_FOR_CHILDREN = frozenset(spec.name for spec in (USE_SUBAGENTS, RUN_CODE, NEW_TASK, SET_TIMER, NEW_RULE))
"""Tools that only the session of a person has."""

RESOURCE = "access_mcp_resource"
"""The tool that reads from any server."""

_MODES = (Mode.PLAN, Mode.ASK, Mode.EDITS, Mode.AUTO, Mode.FULL)
_VERDICTS = (Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.DENY)
_CONFINEMENTS = (Confinement.LOOK, Confinement.WORK, Confinement.GIT, Confinement.OPEN)

Meant = Callable[[ToolSpec, Mapping[str, Any]], tuple[ToolSpec, Mapping[str, Any]]]


def narrower_mode(one: Mode, other: Mode) -> Mode:
    """Give the mode of two in which less runs without asking."""
    return min(one, other, key=_MODES.index)


class ParentStanding(msgspec.Struct, frozen=True):
    """The parent, as a decision about a call of its subagent needs it: its policy, and how it stands now."""

    judge: Judge
    standing: Callable[[], Standing]
    shape: SessionShape | None = None


class ChildShape(SessionShape, frozen=True, kw_only=True):
    """The shape of a subagent of `parent`: the `words` of its agent stand first in its prompt.

    Its decisions are the narrower of two: its own in its own folder, in the narrower mode of both; and the parent's, of
    the same call in the parent's folder. What it remembers, it remembers for the parent's folder. Of servers it may use
    the tools that fit a glob of `of_servers`; None is all. `meant` says which tool of a server a call is about.
    """

    parent: ParentStanding
    of_servers: tuple[str, ...] | None = None
    meant: Meant | None = None
    words: PromptPart
    as_parent: Renaming = IN_SAME_FOLDER
    remember: Callable[[Any], None]

    def offers(self, tool: str) -> bool:
        above = self.parent.shape
        return tool not in NOT_FOR_CHILDREN and super().offers(tool) and (above is None or above.offers(tool))

    def _is_removed(self, name: str) -> bool:
        return super()._is_removed(name) or not self._may_reach(name)

    def _may_reach(self, name: str) -> bool:
        """Whether a tool of a server is among those that its agent may use; what reads of any server is for all."""
        if self.of_servers is None or not (name.startswith(SERVER_TOOLS) or name == RESOURCE):
            return True
        return any(fits_glob(one, name) for one in self.of_servers)

    def applied(self, ports: Ports) -> Ports:
        above = self.parent.shape
        shaped = super().applied(ports if above is None else above.applied(ports))
        return msgspec.structs.replace(shaped, remember=self.remember)

    def _shaped(self, parts: tuple[PromptPart, ...]) -> tuple[PromptPart, ...]:
        return (self.words, *super()._shaped(parts))

    def judged(self, judge: Judge) -> Judge:
        own_judge = super().judged(judge)

        def narrowed(
            spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing
        ) -> Decision:
            now = self.parent.standing()
            own = msgspec.structs.replace(
                standing,
                mode=narrower_mode(standing.mode, now.mode),
                tainted=standing.tainted or now.tainted,
                allowances=(*standing.allowances, *now.allowances),
            )
            decided = own_judge(spec, arguments, accesses, own)
            if self.meant is not None and self._is_removed(self.meant(spec, arguments)[0].name):
                why = Reason(rule="disallowed-tools", text="its agent does not have this tool")
                return msgspec.structs.replace(
                    decided, verdict=Verdict.DENY, reasons=(why, *decided.reasons), offers=(), alternatives=()
                )
            above = msgspec.structs.replace(own, mode=now.mode)
            meant, reached = self.as_parent.call(dict(arguments), accesses)
            return narrower(decided, self.parent.judge(spec, meant, reached, above), self.as_parent)

        return narrowed


def narrower(own: Decision, above: Decision, as_above: Renaming = IN_SAME_FOLDER) -> Decision:
    """Give a decision that is no wider than either; it names what `own` judged, which the other names `as_above`."""
    if own.confinement is not None and above.confinement is not None:
        confinement = min(own.confinement, above.confinement, key=_CONFINEMENTS.index)
        own = msgspec.structs.replace(own, confinement=confinement)
    grants = tuple(one for one in own.grants if as_above.right(one) in above.grants)
    if grants != own.grants:
        reasons = (*(one for one in own.reasons if one.rule != "grants"), *granting(grants))
        own = msgspec.structs.replace(own, grants=grants, reasons=reasons)
    own = msgspec.structs.replace(own, outside=own.outside or above.outside)
    if _VERDICTS.index(above.verdict) <= _VERDICTS.index(own.verdict):
        return own
    known = {one.id for one in above.offers}
    return msgspec.structs.replace(
        own,
        verdict=above.verdict,
        reasons=(*above.reasons, *own.reasons),
        offers=tuple(one for one in own.offers if one.id in known),
        alternatives=(),
    )
