"""What the caller of a session wants different: the words of the prompt, the tools, and what runs or never runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from treadle.app.config.foreign_tools import claude_calls
from treadle.engine.ports import Judge, Ports
from treadle.policy.marks import fits_glob
from treadle.policy.rules import Rule, Ruleset
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Allowance, Decision, Reason, Situation, Standing, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import Access, ToolSpec
from treadle.tools.declarations import ATTEMPT_COMPLETION, PLAN_MODE_RESPOND

OWN_WORDS = frozenset({"work", "checklist", "git"})
"""The parts of the prompt that say how to work; the others say how calls are made, and what people want."""

_ENDS = frozenset({ATTEMPT_COMPLETION.name, PLAN_MODE_RESPOND.name})
"""What ends a turn stays whatever tools are wanted."""


class SessionShape(Struct, frozen=True, kw_only=True):
    """What a caller wants. `system` stands in place of Treadle's own words on how to work, `append` after everything.

    `only` names the built-in tools that are offered, ours; None is all. `removed` are tools that are not offered: ours,
    those of servers (as globs), and Claude Code's names of what a call would do.
    `allowances` are what runs without asking, `denied` what never runs.
    """

    root: Path
    system: str | None = None
    append: str = ""
    only: frozenset[str] | None = None
    removed: frozenset[str] = frozenset()
    allowances: tuple[Allowance, ...] = ()
    denied: tuple[Rule, ...] = ()

    def offers(self, tool: str) -> bool:
        """Whether a tool is offered."""
        return self._wants(tool) and not self._is_removed(tool)

    def _wants(self, tool: str) -> bool:
        from treadle.tools.tool_catalogue import SPECS

        return self.only is None or tool in self.only or tool in _ENDS or tool not in SPECS

    def applied(self, ports: Ports) -> Ports:
        """Give what a session works with, changed as wanted."""

        def left_out(model: str, situation: Situation) -> Mapping[str, str]:
            gone = {name: "it is not offered in this session" for name in ports.tools if self._is_removed(name)}
            return {**ports.left_out(model, situation), **gone}

        @cache
        def shaped(parts: tuple[PromptPart, ...]) -> tuple[PromptPart, ...]:
            return self._shaped(parts)

        def system(model: str, protocol: ToolProtocol, situation: Situation) -> tuple[PromptPart, ...]:
            return shaped(ports.system(model, protocol, situation))

        return msgspec.structs.replace(ports, left_out=left_out, system=system, judge=self.judged(ports.judge))

    def _is_removed(self, name: str) -> bool:
        return name in self.removed or any("*" in one and fits_glob(one, name) for one in self.removed)

    def _shaped(self, parts: tuple[PromptPart, ...]) -> tuple[PromptPart, ...]:
        if self.system is not None:
            parts = tuple(part for part in parts if part.name not in OWN_WORDS)
            parts = (PromptPart(name="system", text=self.system, origin="--system-prompt"), *parts)
        if self.append:
            parts = (*parts, PromptPart(name="appended", text=self.append, origin="--append-system-prompt"))
        return parts

    def judged(self, judge: Judge) -> Judge:
        """Give a judge that never lets run what the caller does not want."""

        def shaped(
            spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing
        ) -> Decision:
            decided = judge(
                spec,
                arguments,
                accesses,
                msgspec.structs.replace(standing, allowances=(*standing.allowances, *self.allowances)),
            )
            why = self._why_not(spec, arguments, accesses, standing)
            if why is None:
                return decided
            return msgspec.structs.replace(
                decided, verdict=Verdict.DENY, reasons=(why, *decided.reasons), offers=(), alternatives=()
            )

        return shaped

    def _why_not(
        self, spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing
    ) -> Reason | None:
        names = [spec.name, *(call.name for call in claude_calls(spec.name, arguments, str(self.root)))]
        gone = next(filter(self._is_removed, names), "")
        if gone:
            return Reason(rule="disallowed-tools", text=f"{gone} is not allowed in this session")
        if not self.denied:
            return None
        from treadle.app.session.commands.judging import policy_context
        from treadle.policy.decide import decide

        context = policy_context(str(self.root), standing, trusted=False, rules=Ruleset(rules=self.denied))
        decision = decide(spec, arguments, accesses, replace(context, confines=False))
        ids = {rule.id for rule in self.denied}
        said = (*decision.reasons, *(reason for part in decision.parts for reason in part.reasons))
        if decision.verdict is not Verdict.DENY or not any(reason.rule in ids for reason in said):
            return None
        return Reason(rule="disallowed-tools", text="a rule of this session does not allow it")
