"""Decisions, modes, questions and answers."""

from enum import StrEnum
from typing import Any

from msgspec import field

from treadle.protocol.base import Record, Tagged
from treadle.protocol.tools import Access, Confinement, CopyChange, CopyChanges, Preview, Risk, SandboxDenial


class Verdict(StrEnum):
    """What the security layer says of a call."""

    ALLOW = "ALLOW"
    REQUIRE_USER_CONFIRMATION = "REQUIRE_USER_CONFIRMATION"
    DENY = "DENY"


class Mode(StrEnum):
    """How much runs without asking; plan changes nothing."""

    PLAN = "plan"
    ASK = "ask"
    EDITS = "edits"
    AUTO = "auto"
    FULL = "full"


class Reason(Record, frozen=True, kw_only=True):
    """One rule that spoke; `source` is the file and line of the rule."""

    rule: str
    text: str
    source: str = ""


class Part(Record, frozen=True, kw_only=True):
    """One judged part of a call: a path, or one command of a compound line."""

    text: str
    verdict: Verdict
    risk: Risk
    reasons: tuple[Reason, ...] = ()


class Allowance(Record, frozen=True, kw_only=True):
    """What a person allows from now on. It covers a part of a call when everything that it names matches.

    `argv` is a prefix of a command's words unless `exact`; `path` is absolute or a glob, `op` is `read` or `write`;
    `tool_digest` pins the declaration of a tool.
    """

    id: str
    tool: str = ""
    tool_digest: str = ""
    argv: tuple[str, ...] = ()
    exact: bool = False
    path: str = ""
    op: str = ""
    host: str = ""


CONTROL_WRITE = "control-write"
"""The rule by which it is known that a part names a control file to write it."""

COMMAND_HOSTS = "commands:hosts"
"""The tool of an allowance of hosts that commands reach. No tool has this name: it allows no call of one."""


class AllowScope(StrEnum):
    """How long an allowance holds: for this session, or for the user's every session."""

    SESSION = "session"
    USER = "user"


class Decision(Record, frozen=True, kw_only=True):
    """The answer for one call; the first of the `reasons` decided. `digest` names what was judged; only that may run.

    `offers` are the narrowest allowances under which the call would not ask; empty where there are none to offer.
    `alternatives` are commands of a line that is not allowed which would run without asking by themselves.
    `confinement` is what its commands run in, when they may; None for a call that runs none. `grants` are the rights
    beyond that which the call has when it runs: its yes, or the rule, gives them.
    `asks_when_used` are rights that are asked for when the command uses them, in the middle.
    `outside` says that a command of it brings text from outside, which taints the rest of the turn.
    """

    verdict: Verdict
    risk: Risk
    reasons: tuple[Reason, ...] = ()
    parts: tuple[Part, ...] = ()
    digest: str = ""
    offers: tuple[Allowance, ...] = ()
    alternatives: tuple[str, ...] = ()
    confinement: Confinement | None = None
    grants: tuple[SandboxDenial, ...] = ()
    asks_when_used: tuple[SandboxDenial, ...] = ()
    outside: bool = False

    @property
    def dangerous(self) -> bool:
        """Whether a yes to it is dangerous: by its risk, a right that it gives, or a control file that it names."""
        reasons = (*self.reasons, *(reason for part in self.parts for reason in part.reasons))
        names = any(reason.rule == CONTROL_WRITE for reason in reasons)
        return self.risk is Risk.CRITICAL or names or any(right.dangerous for right in self.grants)


class Standing(Record, frozen=True, kw_only=True):
    """What a decision depends on beside the call: how the session stands.

    `tainted` says that text from outside was read in this turn, `fetched` are the URLs that were asked for in it.
    """

    mode: Mode
    tainted: bool = False
    fetched: tuple[str, ...] = ()
    allowances: tuple[Allowance, ...] = ()


class Situation(Record, frozen=True, kw_only=True):
    """What the model works under: its mode, whether somebody can answer, and how many steps a turn may have."""

    mode: Mode
    user_present: bool
    max_steps: int | None = None


class OptionKind(StrEnum):
    """ACP's permission option kinds, `answer` for a question that is no permission, and one more.

    `run_for_real`: what a command made in its throw-away copy is discarded, and it runs again in the workspace itself.
    """

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"
    ANSWER = "answer"
    RUN_FOR_REAL = "run_for_real"


class QuestionKind(StrEnum):
    """Why the session waits for a person."""

    PERMISSION = "permission"
    FOLLOWUP = "followup"
    GUIDANCE = "guidance"
    BUDGET = "budget"
    SUMMARY = "summary"
    ELICITATION = "elicitation"


UP_TO = "up to "
"""How `more` begins where a yes raises a budget: `up to $10.00`."""

WAIT_FOR = "wait for "
"""How `more` begins where a yes waits for a provider's limit to reset: `wait for 45 min`."""


class Question(Record, frozen=True, kw_only=True):
    """Something only a person can answer. `options` are the answers offered, for a permission its option kinds; with
    `multiple` an answer may name several of them, each in a line.

    A permission carries what the call would touch, and its arguments, which the person may amend. With `denial` it is
    about a second run of a call that the sandbox stopped, with the right that it lacked; with `copy` about keeping what
    the call's command changed in a throw-away copy, or where that is not whole about running it for real; with `more`
    besides, once more about what no view can show. Where a limit is reached, `more` is what a yes gives, in words:
    `up to $10.00`. A summary is asked about with its text as the preview. An elicitation comes from a running call:
    it wants `arguments` of a `form`, which is a flat JSON Schema of an object, or a `url` to be opened; `offers` are
    what a lasting yes to it allows. What a subagent asks has its session as `child`, its `agent` and its `task`, and
    the name of the `tool` and the id of its `child_call` where it is about a call.
    """

    id: str
    kind: QuestionKind
    text: str
    options: tuple[str, ...] = ()
    multiple: bool = False
    call_id: str = ""
    preview: Preview | None = None
    decision: Decision | None = None
    accesses: tuple[Access, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    denial: SandboxDenial | None = None
    copy: CopyChanges | None = None
    more: str = ""
    form: dict[str, Any] = field(default_factory=dict)
    url: str = ""
    offers: tuple[Allowance, ...] = ()
    child: str = ""
    agent: str = ""
    task: str = ""
    tool: str = ""
    child_call: str = ""

    @property
    def waits(self) -> bool:
        """Whether a yes waits until a provider's limit resets; it raises no limit of the user's own."""
        return self.kind is QuestionKind.BUDGET and self.more.startswith(WAIT_FOR)

    @property
    def raises(self) -> bool:
        """Whether a yes raises a budget, by what it was at first."""
        return self.kind is QuestionKind.BUDGET and self.more.startswith(UP_TO)

    @property
    def rights(self) -> tuple[SandboxDenial, ...]:
        """What a yes gives beyond the sandbox."""
        if self.denial is not None:
            return (self.denial,)
        if self.copy is not None:
            return () if self.copy.whole or self.copy.rights is None else self.copy.rights.granted
        return () if self.decision is None else self.decision.grants

    @property
    def dangerous(self) -> bool:
        """Whether a yes is dangerous, by what it gives, whichever way the question came: before a run, or after it.

        It is dangerous to run what the policy finds so, to end the sandbox or open what it protects, and to change what
        decides over later runs. What can be applied whole is neither: that was held back.
        """
        if self.copy is not None and self.copy.whole:
            return False
        judged = self.decision is not None and self.decision.dangerous
        opens = any(right.dangerous for right in self.rights)
        return judged or opens or _decide_later([change.path for change in self.changes if change.held])

    @property
    def risk(self) -> Risk:
        """The risk of a yes: that of the decision, or critical where it gives something dangerous."""
        judged = Risk.NONE if self.decision is None else self.decision.risk
        return Risk.CRITICAL if self.dangerous else judged

    @property
    def changes(self) -> tuple[CopyChange, ...]:
        """What a command changed in its throw-away copy, each path of it, in the order in which it is shown."""
        return () if self.copy is None else self.copy.changes

    @property
    def whole(self) -> bool:
        """Whether all of the `changes` can be applied; where not, a yes runs the command for real."""
        return self.copy is None or self.copy.whole

    @property
    def yes(self) -> OptionKind:
        """What a plain yes means: where changes cannot be applied, that the command runs for real."""
        only_for_real = OptionKind.ALLOW_ONCE not in self.options and OptionKind.RUN_FOR_REAL in self.options
        return OptionKind.RUN_FOR_REAL if only_for_real else OptionKind.ALLOW_ONCE


def _decide_later(paths: list[str]) -> bool:
    """Whether one of the paths is a control file; what git keeps of the history decides nothing."""
    if not paths:
        return False
    from treadle.protocol.protected_names import control_name, is_git_history

    return any(control_name(path) is not None and not is_git_history(path) for path in paths)


class CallAsked(Tagged, frozen=True, kw_only=True, tag="call_asked"):
    """A running call asks the user for something, or withdraws what it asked (without a `text`).

    `form` is a flat JSON Schema of an object whose values are wanted, `url` an address to be opened. `offers` are what
    a lasting yes allows. `after`: what the call started asks in the background, and the call itself is over. `relayed`
    is the question of a subagent that the call began, whole.
    """

    call_id: str
    question_id: str
    text: str = ""
    form: dict[str, Any] = field(default_factory=dict)
    url: str = ""
    offers: tuple[Allowance, ...] = ()
    after: bool = False
    relayed: Question | None = None
