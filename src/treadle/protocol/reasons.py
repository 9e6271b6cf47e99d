"""Why a call was decided as it was: the same words from the same decision wherever that is said."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from treadle.protocol.patterns import regex
from treadle.protocol.permissions import Decision, Part, Reason
from treadle.protocol.tools import Risk

_LONGEST_PART = 100
_ASKS = regex(r"^mode (\w+) asks")
_OTHER = 5  # rules that no family names stand among those that act on the machine
MODE_RULE = "mode"
"""The rule of reasons that are what the mode says."""

_BESIDE = frozenset({MODE_RULE, "grants"})
"""Rules that say what the mode does and what a yes gives: neither is anything that a call does."""

YOU_ALLOWED = "you allowed "
"""How the reason begins that is an earlier yes of the person, for the session."""

NOT_TRUSTED = "untrusted"
"""The rule of reasons that are the folder's, and not the call's."""

_TRUST_IT = "`treadle trust`, or --trust for one run"


class DecisionWords(Struct, frozen=True):
    """A decision in words: `headline` is its strongest reason, `further` are its others, strongest first.

    Each is a clause that begins as its subject is written and has no full stop; nothing in it is escaped. `rule` is
    the one that the headline is of, empty where there is no reason. `way_on` names the commands that would change the
    answer, for those who can give them.
    """

    headline: str
    rule: str
    further: tuple[str, ...] = ()
    way_on: str = ""

    @property
    def whole_headline(self) -> str:
        """The headline with the way on."""
        return headline_with(self.headline, self.way_on)


class PartEffect(Struct, frozen=True):
    """What a part of a call does, as a verb, and whether it should stand out."""

    verb: str
    warns: bool = False


_FAMILIES: tuple[tuple[frozenset[str], PartEffect], ...] = (
    (frozenset({"delete", "delete-all", "delete-list", "delete-tree", "data-loss"}), PartEffect("deletes", warns=True)),
    (frozenset({"git", "git-option", "git-config"}), PartEffect("git")),
    (frozenset({"control-write", "protected-path"}), PartEffect("writes", warns=True)),
    (
        frozenset({"secret-in-arguments", "secret-read", "secret-variable", "prints-environment"}),
        PartEffect("reads", warns=True),
    ),
    (frozenset({"publish", "upload", "private-host"}), PartEffect("network", warns=True)),
    (frozenset({"without-sandbox"}), PartEffect("runs", warns=True)),
    (frozenset({"write-outside"}), PartEffect("writes", warns=True)),
    (frozenset({"read-outside", "outside"}), PartEffect("reads")),
    (
        frozenset({"network", "download", "fetch-url", "unknown-url", "network-redirect"}),
        PartEffect("network", warns=True),
    ),
    (frozenset({NOT_TRUSTED}), PartEffect("runs")),
    (frozenset({"git-write"}), PartEffect("git")),
    (frozenset({"writer", "redirect", "write-inside", "inside", "unknown-writes"}), PartEffect("writes")),
    (
        frozenset({"interpreter", "unknown-program", "unknown-script", "opaque-code", "evaluated-text", "shell"}),
        PartEffect("runs"),
    ),
)
"""What rules are about, the strongest first: what is lost for ever, what takes control, what gets out, what changes."""

_RANKS = {rule: len(_FAMILIES) - at for at, (rules, _) in enumerate(_FAMILIES) for rule in rules}
_EFFECTS = {rule: effect for rules, effect in _FAMILIES for rule in rules}
_BY_RISK = {
    Risk.NONE: PartEffect("runs"),
    Risk.READ: PartEffect("reads"),
    Risk.READ_OUTSIDE: PartEffect("reads"),
    Risk.WRITE: PartEffect("writes"),
    Risk.EXECUTE: PartEffect("runs"),
    Risk.REMOTE: PartEffect("network", warns=True),
    Risk.CRITICAL: PartEffect("runs", warns=True),
}


def strength_of(rules: Iterable[str]) -> int:
    """Rank what rules are about among reasons of the same risk: the strongest has the highest number, no rule 0."""
    return max((_RANKS.get(rule, len(_FAMILIES) - _OTHER) for rule in rules if rule not in _BESIDE), default=0)


def effect_of(part: Part) -> PartEffect:
    """Say what a part does, by the first of its reasons that says it, or else by its risk."""
    says = _EFFECTS.keys() - {NOT_TRUSTED}
    known = (_EFFECTS[reason.rule] for reason in part.reasons if reason.rule in says)
    effect = next(known, _BY_RISK[part.risk])
    return PartEffect(effect.verb, warns=True) if part.risk is Risk.CRITICAL else effect


def words_of_decision(decision: Decision) -> DecisionWords:
    """Put a decision into words: the reason that decides, then the others that say what the call does.

    Where a call has several parts, each names the part that it is about. That the folder is not trusted stands in the
    headline beside a stronger reason, too: without it neither that reason's way on nor trust alone would help.
    """
    first, *others = _reasons(decision) or [Reason(rule="", text="the policy gave no reason")]
    headline = _clause(first, decision)
    trust = next((one for one in others if one.rule == NOT_TRUSTED and first.rule != NOT_TRUSTED), None)
    if trust is not None:
        headline = f"{headline}; {trust.text}"
    told = [one for one in others if one.rule not in _BESIDE and one.text and one is not trust]
    further = (_clause(reason, decision) for reason in told)
    return DecisionWords(
        headline,
        first.rule,
        tuple(line for line in dict.fromkeys(further) if line != headline),
        _TRUST_IT if first.rule == NOT_TRUSTED or trust is not None else "",
    )


def mode_reasons(decision: Decision) -> tuple[str, ...]:
    """Say what the mode says of a call, once: `mode ask: Treadle asks you; mode edits would allow it`.

    What it says of parts that are allowed is no reason to ask about the others.
    """
    told = [
        *decision.reasons,
        *(one for part in decision.parts if part.verdict is decision.verdict for one in part.reasons),
    ]
    texts = list(dict.fromkeys(one.text for one in told if one.rule == MODE_RULE))
    # That of one part may say more, such as the way on.
    longest = [one for one in texts if not any(other != one and other.startswith(one) for other in texts)]
    return tuple(_ASKS.sub(r"mode \1: Treadle asks you", one) for one in longest)


def why_decided(decision: Decision) -> str:
    """Give the reason that decides, and what the mode makes of it: the same reason asks in one and runs in another."""
    words = words_of_decision(decision)
    modes = () if words.rule == MODE_RULE else mode_reasons(decision)
    return "; ".join((words.headline, *modes))


def headline_with(headline: str, way_on: str) -> str:
    """Put the way on behind a headline."""
    return f"{headline} ({way_on})" if headline and way_on else headline


def _reasons(decision: Decision) -> list[Reason]:
    """Give the reasons, the one that decides first; of a decision that has none, those of its parts."""
    if decision.reasons:
        return list(decision.reasons)
    risks = tuple(Risk)
    parts = sorted(
        decision.parts, key=lambda part: (part.verdict is decision.verdict, risks.index(part.risk)), reverse=True
    )
    return list(dict.fromkeys(reason for part in parts for reason in part.reasons))


def _clause(reason: Reason, decision: Decision) -> str:
    text = " ".join(reason.text.split()).rstrip(".")
    part = next(_parts_of(reason, decision), "") if len(decision.parts) > 1 else ""
    return f"`{short_part(part)}`: {text}" if part and part not in text else text


def _parts_of(reason: Reason, decision: Decision) -> Iterator[str]:
    return (part.text for part in decision.parts if reason in part.reasons)


def short_part(line: str) -> str:
    """Show a part of a call on one short line."""
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_PART else f"{line[:_LONGEST_PART]}..."
