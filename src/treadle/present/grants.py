"""What a lasting yes to a question would allow, in words."""

import shlex

from msgspec import Struct

from treadle.present.escape import exact_line
from treadle.present.words import describe_allowance
from treadle.protocol.permissions import Allowance, OptionKind, Question
from treadle.protocol.tools import RunCommand


class Grants(Struct, frozen=True, kw_only=True):
    """What a lasting yes would allow: for this session, always and where, with an example and a counterexample.

    `exact`: that is the line that is asked about, and nothing else.
    """

    session: str
    always: str
    where: str
    rule: str
    match: str = ""
    other: str = ""
    exact: bool = False


def grants_of(question: Question) -> Grants | None:
    """Say what a lasting yes would allow; None where none is offered."""
    offers = question.offers or (() if question.decision is None else question.decision.offers)
    if not offers or OptionKind.ALLOW_ALWAYS not in question.options:
        return None
    of_commands = all(offer.argv for offer in offers)
    command = next((access.command for access in question.accesses if isinstance(access, RunCommand)), "")
    covered = command if len(offers) == 1 else ""
    return Grants(
        session=", ".join(map(_grant, offers)),
        always=", ".join(map(_grant, offers)),
        # Rules over commands are bound to the folder when they are saved.
        where="for this project" if of_commands else "in every project",
        rule="; ".join(exact_line(describe_allowance(offer)) for offer in offers),
        match=exact_line(covered) if of_commands else "",
        other=_not_covered(offers[0]) if of_commands else "",
        exact=of_commands and len(offers) == 1 and offers[0].exact,
    )


def _grant(offer: Allowance) -> str:
    if offer.argv:
        return exact_line(f"{shlex.join(offer.argv)}{'' if offer.exact else ' …'}")
    return exact_line(offer.path or offer.host or f"every call of {offer.tool}")


def _not_covered(offer: Allowance) -> str:
    words = [*offer.argv, "--other"] if offer.exact else [*offer.argv[:-1], f"other-{offer.argv[-1]}"]
    return exact_line(shlex.join(words))
