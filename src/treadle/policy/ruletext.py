"""Writes rules as rule files hold them, with examples that show what they match and what they do not."""

import json
import posixpath
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace

from treadle.policy.operations import PathOp
from treadle.policy.rulefile import FORMAT_VERSION, RuleFile, RuleFileError, read_rules
from treadle.policy.rules import Rule, Scope
from treadle.protocol.permissions import Verdict

HEAD = f"version = {FORMAT_VERSION}\n"

_WORDS = {Verdict.ALLOW: "allow", Verdict.REQUIRE_USER_CONFIRMATION: "ask", Verdict.DENY: "deny"}


def render_rules(rules: Iterable[Rule]) -> str:
    """Write a whole rule file."""
    return HEAD + "".join(f"\n{render_rule(rule)}" for rule in rules)


def render_rule(rule: Rule, note: str = "") -> str:
    """Write one rule under its `[[rule]]` line; `note` becomes a comment."""
    lines = ["[[rule]]", *([f"# {' '.join(note.split())}"] if note else []), *_lines(rule)]
    return "".join(f"{line}\n" for line in lines)


def _lines(rule: Rule) -> Iterator[str]:
    yield f"id = {_text(rule.id)}"
    yield f"verdict = {_text(_WORDS[rule.verdict])}"
    if rule.argv:
        yield f"argv = {_list(rule.argv)}"
    if rule.exact:
        yield "exact = true"
    for key in ("tool", "tool_digest", "path", "host", "workspace"):
        if value := getattr(rule, key):
            yield f"{key} = {_text(value)}"
    if rule.op is not None:
        yield f"op = {_text('write' if rule.op is PathOp.WRITE else 'read')}"
    if rule.reason:
        yield f"reason = {_text(rule.reason)}"
    if rule.match:
        yield f"match = {_list(rule.match)}"
    if rule.not_match:
        yield f"not_match = {_list(rule.not_match)}"


def _text(value: str) -> str:
    """Write a basic string: JSON's escapes are TOML's, which also wants DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


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
        others = (*other, f"not-{rule.argv[0]}" if "/" not in rule.argv[0] else "true", f"./{command}")
        return (command,), tuple(example for example in others if example.isprintable())
    if rule.path:
        folder, name = posixpath.split(rule.path)
        return (rule.path,), (posixpath.join(folder, f"not-{name}"),)
    if rule.host:
        return (f"https://{rule.host}/",), (f"https://not-{rule.host}/",)
    return (), ()
