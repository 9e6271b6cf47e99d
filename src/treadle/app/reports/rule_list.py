"""The rules and skills of a folder as lines of text: what applies, why, and what it costs; turns rules on and off."""

import os
from collections.abc import Iterator, Sequence

from treadle.app.security.trusting import SessionTrust, shown_path, trust_command
from treadle.app.session.instructions import RuleSwitches
from treadle.app.session.rule_files import PromptRule, RuleUse, find_rules, nested_rules
from treadle.app.session.skills import Skill, find_skills
from treadle.context.transcript import BYTES_PER_TOKEN
from treadle.store.activation import ActiveKind

RULES_USAGE = "/rules lists the rules. `/rules off N` and `/rules on N` turn one off and on."

_WHY = {
    RuleUse.ALWAYS: "in every request",
    RuleUse.DESCRIBED: "the model reads it when it fits: {description}",
    RuleUse.MENTIONED: "only when you mention it: @{name}",
}


def rules_command(trust: SessionTrust, argument: str = "") -> str:
    """Do what follows on `/rules`: nothing lists them, `off N` and `on N` turn one off and on. Gives what to show."""
    word, _, number = argument.strip().partition(" ")
    rules = _all_rules(trust)
    if word not in ("on", "off"):
        return "\n".join(_listed(trust, rules)) if not word else RULES_USAGE
    if not number.strip().isdecimal() or not 1 <= int(number) <= len(rules):
        return f"/rules {word} needs the number of a rule. /rules lists them." if rules else "There are no rules."
    rule = rules[int(number) - 1]
    try:
        RuleSwitches(trust.workspace).turn(rule.origin, on=word == "on")
    except OSError as error:
        return f"It could not be saved: {error.strerror}."
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
    return round(sum(len(block.text.encode()) for block in rule.blocks) / BYTES_PER_TOKEN)


def _all_rules(trust: SessionTrust) -> tuple[PromptRule, ...]:
    """Give the rules of the folder and of the user, and those in folders below that were trusted."""
    folders = sorted({(trust.workspace / item.path).parent for item in trust.trust.nested})
    return (*find_rules(trust), *(rule for folder in folders for rule in nested_rules(trust, folder)))


def _listed(trust: SessionTrust, rules: Sequence[PromptRule]) -> Iterator[str]:
    off = RuleSwitches(trust.workspace).off()
    if not trust.trusted and any(item.kind is ActiveKind.RULES for item in trust.items):
        yield f"The rules of this folder are not used: it is not trusted. To use them: {trust_command(trust.workspace)}"
    if not rules:
        yield "There are no rules. AGENTS.md in this folder is sent to the model with every request; /init writes one."
        return
    sent = [rule for rule in rules if rule.use is RuleUse.ALWAYS and not rule.unused and rule.origin not in off]
    yield f"Rules; about {sum(map(tokens_of_rule, sent)):,} tokens of them are in every request:"
    width = max(len(shown_path(rule.origin)) for rule in rules)
    for number, rule in enumerate(rules, 1):
        state = "off" if rule.origin in off else "-" if rule.unused else "on"
        price = f"{tokens_of_rule(rule):>6,} tokens"
        yield f"{number:>3}  {state:<3}  {shown_path(rule.origin):<{width}}  {price}  {_applies(rule, trust)}"
        if rule.problem:
            yield f"          {shown_path(rule.problem)}"
    yield RULES_USAGE


def _applies(rule: PromptRule, trust: SessionTrust) -> str:
    if rule.unused:
        return f"not used: {shown_path(rule.unused)}"
    if rule.use is RuleUse.TOUCHED:
        about = ", ".join(rule.paths) or f"{os.path.relpath(rule.folder, trust.workspace)}/"
        return f"when the model works on {shown_path(about)}"
    return _WHY[rule.use].format(description=shown_path(rule.description), name=shown_path(rule.names[0]))


def _skill_lines(skill: Skill) -> Iterator[str]:
    state = f"not used: {skill.unused}" if skill.unused else skill.description
    yield f"/{shown_path(skill.name)}  {shown_path(state)}"
    yield f"    {shown_path(str(skill.folder))}"
    if skill.problem:
        yield f"    {shown_path(skill.problem)}"
