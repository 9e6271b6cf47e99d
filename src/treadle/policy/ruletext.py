"""Writes rules as rule files hold them, with examples that show what they match and what they do not."""

import json
import posixpath
import shlex
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from treadle.policy.rulefile import FORMAT_VERSION, RuleFile, RuleFileError, read_rules, table_of
from treadle.policy.rules import Rule, Scope
from treadle.protocol.permissions import Verdict

HEAD = f"version = {FORMAT_VERSION}\n"


def render_rules(rules: Iterable[Rule]) -> str:
    """Write a whole rule file."""
    return HEAD + "".join(f"\n{render_rule(rule)}" for rule in rules)


def render_rule(rule: Rule, note: str = "") -> str:
    """Write one rule under its `[[rule]]` line; `note` becomes a comment."""
    written = msgspec.structs.asdict(table_of(rule)).items()
    lines = ["[[rule]]", *([f"# {' '.join(note.split())}"] if note else [])]
    return "".join(f"{line}\n" for line in (*lines, *(f"{key} = {_text(value)}" for key, value in written if value)))


def _text(value: object) -> str:
    """Write a value: JSON's are TOML's, which also wants DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def with_examples(rule: Rule) -> Rule | None:
    """Give a rule that was found out with examples of its own; None where it cannot be written so that it reads back.

    The examples against it are the next things that somebody might take it for.
    """
    match, not_match = _examples(rule)
    shown = replace(rule, scope=Scope.USER, match=match, not_match=not_match)
    try:
        (read,) = read_rules(RuleFile(name="", text=render_rules([shown]), scope=Scope.USER))
    except (RuleFileError, ValueError):
        return None
    return shown if replace(read, source=rule.source) == shown else None


def _examples(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give examples for and against."""
    if rule.argv:
        command = shlex.join(rule.argv)
        other = [f"{command} --other"] if rule.exact else []
        others = [*other, f"not-{rule.argv[0]}" if "/" not in rule.argv[0] else "true"]
        if rule.verdict is Verdict.ALLOW:
            others.append(f"./{command}")  # one that denies is about any program of this name
        return (command,), tuple(example for example in others if example.isprintable())
    if rule.path:
        folder, name = posixpath.split(rule.path)
        is_glob = "*" in rule.path or "?" in rule.path
        return (rule.path,), (() if is_glob else (posixpath.join(folder, f"not-{name}"),))
    if rule.host:
        name = rule.host.removeprefix(".")
        return (f"https://{'any' if name != rule.host else ''}{rule.host}/",), (f"https://not-{name}/",)
    return (), ()
