"""The parts of a call that is asked about, in words, and where they stand in its text."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.present.escape import exact
from treadle.protocol.permissions import Part, Verdict
from treadle.protocol.reasons import MODE_RULE, PartEffect, effect_of
from treadle.protocol.tools import Risk


class AskedPart(Struct, frozen=True, kw_only=True):
    """One part of a command: what it does, its text, where, which rules say so, whether it is dangerous, and asked."""

    effect: PartEffect
    text: str
    where: str = ""
    rules: str = ""
    dangerous: bool = False
    asked: bool = True


class AskedPiece(Struct, frozen=True):
    """A piece of what is asked about; `warns` where it is a part that stands out."""

    text: str
    warns: bool = False


def asked_part(part: Part) -> AskedPart:
    """Put a judged part of a call into words."""
    rules = {reason.rule for reason in part.reasons}
    outside = rules & {"write-outside", "read-outside", "outside"}
    where = "outside this project" if outside else "inside this project" if "write-inside" in rules else ""
    named = ", ".join(reason.rule for reason in part.reasons if reason.rule != MODE_RULE)
    return AskedPart(
        effect=effect_of(part),
        text=exact(part.text),
        where=where,
        rules=f"rule: {named} · risk: {part.risk}",
        dangerous=part.risk is Risk.CRITICAL,
        asked=part.verdict is not Verdict.ALLOW,
    )


def pieces_of(text: str, every: Sequence[AskedPart]) -> Iterator[AskedPiece]:
    """Cut what is asked about where a part stands out: what makes it dangerous, or where nothing is, what warns."""
    some = any(part.asked and part.dangerous for part in every)
    for part in every:
        named = re.search(rf"(?<![\w./-]){re.escape(part.text)}(?![\w./-])", text) if part.text else None
        if named is None:
            continue
        yield AskedPiece(text[: named.start()])
        yield AskedPiece(named[0], warns=part.asked and (part.dangerous if some else part.effect.warns))
        text = text[named.end() :]
    yield AskedPiece(text)
