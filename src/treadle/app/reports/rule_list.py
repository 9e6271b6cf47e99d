"""The rules and skills of a folder as lines of text: what applies, why, and what it costs; turns rules on and off."""

import os
from collections.abc import Iterator

from treadle.app.reports.unused_files import unused_files
from treadle.app.security.trusting import SessionTrust, shown_path, trust_command
from treadle.app.session.rules.instructions import RuleSwitches
from treadle.app.session.rules.rule_files import PromptRule, RuleUse, find_rules, nested_rules
from treadle.app.session.rules.skills import Skill, find_skills
from treadle.context.transcript import estimated_tokens
from treadle.present.escape import exact_line
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.store.activation import ActiveKind
from treadle.store.nested_rules import rules_folder

RULES_USAGE = "/rules lists the rules. `/rules off N` and `/rules on N` turn one off and on."

_WHY = {
    RuleUse.ALWAYS: "in every request",
    RuleUse.DESCRIBED: "the model reads it when it fits: {description}",
    RuleUse.MENTIONED: "only when you mention it: @{name}",
}


class PromptRuleLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One rule: `state` is on, off, or - where it is not used; `applies` says when it is sent, or why it is not.

    `always`: it is in every request.
    """

    origin: str
    state: str
    tokens: int
    always: bool
    applies: str
    problem: str


def rules_command(trust: SessionTrust, argument: str = "") -> str:
    """Do what follows on `/rules`: nothing lists them, `off N` and `on N` turn one off and on. Gives what to show."""
    word, _, number = argument.strip().partition(" ")
    if word not in ("on", "off"):
        return "\n".join(_listed(trust)) if not word else RULES_USAGE
    rules = _all_rules(trust)
    if not number.strip().isdecimal() or not 1 <= int(number) <= len(rules):
        return f"/rules {word} needs the number of a rule. /rules lists them." if rules else "There are no rules."
    rule = rules[int(number) - 1]
    try:
        turn_rule(trust, rule.origin, on=word == "on")
    except ConfigError as error:
        return f"{error.what} {error.why}".strip()
    place = shown_path(str(trust.workspace))
    return f"{word}: {shown_path(rule.origin)}. This applies in {place} from the next request on."


def skills_text(trust: SessionTrust) -> str:
    """List the skills: how each is used, and what is wrong with it."""
    skills = find_skills(trust)
    if not skills:
        return (
            "There are no skills. A skill is a folder with a SKILL.md in .agents/skills, here or in your home folder."
        )
    return "\n".join(line for skill in skills for line in _skill_lines(skill))


def tokens_of_rule(rule: PromptRule) -> int:
    """Estimate what a rule costs wherever it is sent."""
    return estimated_tokens(sum(len(block.text.encode()) for block in rule.blocks))


def _all_rules(trust: SessionTrust) -> tuple[PromptRule, ...]:
    """Give the rules of the folder and of the user, and those in folders below that were trusted."""
    folders = sorted(
        {trust.workspace / rules_folder(item.path) for item in trust.trust.nested if item.kind is ActiveKind.RULES}
    )
    return (*find_rules(trust), *(rule for folder in folders for rule in nested_rules(trust, folder)))


def prompt_rules(trust: SessionTrust) -> tuple[PromptRuleLine, ...]:
    """List the rules of a folder and of the user, in the order in which `/rules` numbers them."""
    off = RuleSwitches(trust.workspace).off()
    return tuple(
        PromptRuleLine(
            origin=rule.origin,
            state="off" if rule.origin in off else "-" if rule.unused else "on",
            tokens=tokens_of_rule(rule),
            always=rule.use is RuleUse.ALWAYS,
            applies=_applies(rule, trust),
            problem=rule.problem,
        )
        for rule in _all_rules(trust)
    )


def turn_rule(trust: SessionTrust, origin: str, *, on: bool) -> None:
    """Turn a rule of a folder on or off; raises `ConfigError`."""
    if not any(rule.origin == origin for rule in _all_rules(trust)):
        raise ConfigError("rule-file", f"There is no rule {shown_path(origin)} here.", fix="`/rules` lists them.")
    try:
        RuleSwitches(trust.workspace).turn(origin, on=on)
    except OSError as error:
        raise ConfigError(
            "rule-file", "It could not be saved.", why=str(error.strerror), fix="Check the data folder."
        ) from error


def _listed(trust: SessionTrust) -> Iterator[str]:
    lines = prompt_rules(trust)
    if not trust.trusted and any(item.kind is ActiveKind.RULES for item in trust.trust.waiting):
        yield f"The rules of this folder are not used: it is not trusted. To use them: {trust_command(trust.workspace)}"
    if not lines:
        yield "There are no rules. AGENTS.md in this folder is sent to the model with every request; /init writes one."
        yield from _not_used(trust)
        return
    sent = [line for line in lines if line.always and line.state == "on"]
    yield f"Rules; about {sum(line.tokens for line in sent):,} tokens of them are in every request:"
    width = max(len(shown_path(line.origin)) for line in lines)
    for number, line in enumerate(lines, 1):
        price = f"{line.tokens:>6,} tokens"
        yield f"{number:>3}  {line.state:<3}  {shown_path(line.origin):<{width}}  {price}  {line.applies}"
        if line.problem:
            yield f"          {exact_line(line.problem)}"
    yield from _not_used(trust)
    yield RULES_USAGE


def _not_used(trust: SessionTrust) -> Iterator[str]:
    """Name what the folder has for other agents and is not used."""
    unused = unused_files(trust)
    if unused:
        yield "This folder also has files for other agents that are not used:"
        yield from (f"  {shown_path(one.place)}{one.many}: {one.why}" for one in unused)


def _applies(rule: PromptRule, trust: SessionTrust) -> str:
    if rule.unused:
        return f"not used: {shown_path(rule.unused)}"
    if rule.use is RuleUse.TOUCHED:
        about = ", ".join(rule.paths) or f"{os.path.relpath(rule.folder, trust.workspace)}/"
        return f"when the model works on {shown_path(about)}"
    return _WHY[rule.use].format(description=shown_path(rule.description), name=shown_path(rule.names[0]))


def _skill_lines(skill: Skill) -> Iterator[str]:
    state = f"not used: {skill.unused}" if skill.unused else skill.description
    by_whom = f" (by the subagent {shown_path(skill.agent)})" if skill.agent else ""
    yield f"/{shown_path(skill.name)}  {shown_path(state)}{by_whom}"
    yield f"    {shown_path(str(skill.folder))}"
    if skill.problem:
        yield f"    {exact_line(skill.problem)}"
