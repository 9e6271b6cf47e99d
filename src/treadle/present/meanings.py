"""What rules of the policy say about a part of a call, in a few words."""

from collections.abc import Set as AbstractSet

from msgspec import Struct

from treadle.protocol.permissions import Decision, Verdict
from treadle.protocol.tools import Risk


class Meaning(Struct, frozen=True):
    """What a rule of the policy says about a part: in a few words, as a verb, and whether it should stand out."""

    note: str
    verb: str
    warns: bool = False


_MEANINGS: tuple[tuple[frozenset[str], Meaning], ...] = (
    (frozenset({"delete", "delete-tree"}), Meaning("deletes files", "deletes", warns=True)),
    (
        frozenset({"network", "download", "upload", "fetch-url", "unknown-url", "private-host"}),
        Meaning("uses the network", "network", warns=True),
    ),
    (
        frozenset({"secret-read", "secret-variable", "prints-environment"}),
        Meaning("may read secrets", "reads", warns=True),
    ),
    (frozenset({"write-outside"}), Meaning("writes outside this project", "writes", warns=True)),
    (frozenset({"read-outside", "outside"}), Meaning("outside this project", "reads")),
    (frozenset({"git", "git-write", "git-option", "git-config"}), Meaning("may change the git state", "git")),
    (frozenset({"untrusted"}), Meaning("this folder is not trusted", "runs")),
    (
        frozenset({"interpreter", "unknown-program", "unknown-script", "opaque-code", "evaluated-text", "shell"}),
        Meaning("runs code", "runs"),
    ),
    (frozenset({"writer", "redirect", "write-inside", "unknown-writes"}), Meaning("changes files", "writes")),
)

_BY_RISK = {
    Risk.NONE: Meaning("", "runs"),
    Risk.READ: Meaning("only reads", "reads"),
    Risk.READ_OUTSIDE: Meaning("outside this project", "reads"),
    Risk.WRITE: Meaning("changes files", "writes"),
    Risk.EXECUTE: Meaning("runs code", "runs"),
    Risk.REMOTE: Meaning("uses the network", "network", warns=True),
    Risk.CRITICAL: Meaning("dangerous", "runs", warns=True),
}


def meaning_of_decision(decision: Decision) -> Meaning:
    """Say it of the parts that a decision does not allow, or of all."""
    rules = {
        reason.rule for part in decision.parts if part.verdict is not Verdict.ALLOW for reason in part.reasons
    } or {reason.rule for reason in decision.reasons}
    return meaning_of(rules, decision.risk)


def meaning_of(rules: AbstractSet[str], risk: Risk) -> Meaning:
    """Say what it means that these rules apply."""
    return next((meaning for names, meaning in _MEANINGS if names & rules), _BY_RISK[risk])
