"""Reads and writes rule files: TOML, every rule with examples; nothing of a file is in force unless all of it holds."""

import hashlib
import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from treadle.policy.findings import PathOp
from treadle.policy.marks import UNKNOWN
from treadle.policy.rules import Places, Rule, Ruleset, Scope, Subject, Trace, matches
from treadle.policy.shell.expand import Variables, expand_words
from treadle.policy.shell.shell_parser import parse
from treadle.policy.shell.syntax import BudgetError, Pipeline, ShellSyntaxError, Simple
from treadle.policy.urls import check_url
from treadle.protocol.permissions import Verdict

FORMAT_VERSION = 1

_VERDICTS = {"allow": Verdict.ALLOW, "ask": Verdict.REQUIRE_USER_CONFIRMATION, "deny": Verdict.DENY}
_WRITTEN = tuple(field.name for field in fields(Rule) if field.name not in ("scope", "source"))
"""What a `[[rule]]` may say, in the order in which it is written."""

_HEADING = re.compile(r"\s*\[\[\s*rule\s*\]\]")
_EXAMPLE_PLACES = Places(roots=("/workspace",), home="/home/user")


class RuleFileError(Exception):
    """A rule file cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """The text of one rule file as it was found; `name` is shown to the user.

    Rules that are `remembered` answers of the user do not make another version of the policy: a call that was judged
    before one was added is still the call that was judged.
    """

    name: str
    text: str
    scope: Scope
    remembered: bool = False


def load_rules(files: Iterable[RuleFile], last_good: Mapping[str, str] | None = None) -> Ruleset:
    """Read all rule files in one go.

    A file that cannot be used is named in `problems`, which turns automatic approval off; its `last_good` text, by file
    name, stays in force meanwhile, so that its denials do.
    """
    rules: list[Rule] = []
    problems: list[str] = []
    named: list[Rule] = []
    for file in files:
        try:
            found = read_rules(file)
        except RuleFileError as error:
            problems.append(str(error))
            found = []
            with suppress(RuleFileError):
                found = read_rules(replace(file, text=(last_good or {}).get(file.name, "")))
        rules.extend(found)
        named.extend(() if file.remembered else found)
    version = hashlib.sha256(repr((named, problems)).encode()).hexdigest()
    return Ruleset(rules=tuple(rules), problems=tuple(problems), version=version)


def read_rules(file: RuleFile) -> list[Rule]:
    """Read one rule file and test its examples; raises `RuleFileError` naming file and line."""
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        raise RuleFileError(f"{file.name}: {error}") from error
    if document.get("version") != FORMAT_VERSION or set(document) - {"version", "rule"}:
        wanted = f"it must contain 'version = {FORMAT_VERSION}' and [[rule]] tables, nothing else"
        raise RuleFileError(f"{file.name}: {wanted}")
    tables = document.get("rule", [])
    lines = [number for number, line in enumerate(file.text.splitlines(), 1) if _HEADING.match(line)]
    if not isinstance(tables, list) or len(tables) != len(lines):
        raise RuleFileError(f"{file.name}: each rule needs its own [[rule]] line")
    return [_read_rule(table, file, f"{file.name}:{line}") for table, line in zip(tables, lines, strict=True)]


def _read_rule(table: dict[str, Any], file: RuleFile, source: str) -> Rule:
    try:
        if unknown := sorted(set(table) - set(_WRITTEN)):
            raise ValueError(f"Object contains unknown field `{unknown[0]}`")
        meant: dict[str, Any] = {"op": table.get("op") or None}
        if "verdict" in table:
            verdict = str(table["verdict"]).lower()
            meant["verdict"] = _VERDICTS.get(verdict, verdict)
        rule = msgspec.convert({**table, **meant, "scope": file.scope, "source": source}, Rule)
        if rule.op is PathOp.LIST or not rule.id or "" in (*rule.argv, *rule.match, *rule.not_match):
            raise ValueError("op is read or write, and no name, word or example is empty")
    except (ValueError, TypeError) as error:
        raise RuleFileError(f"{source}: {error}; a rule has an id and a verdict: allow, ask or deny") from error
    if not (rule.argv or rule.path or rule.host or rule.tool):
        raise RuleFileError(f"{source}: the rule {rule.id} matches nothing: give argv, path, host or tool")
    if rule.workspace and not rule.workspace.startswith("/"):
        raise RuleFileError(f"{source}: workspace must be an absolute path")
    _test_examples(rule)
    return rule


def _test_examples(rule: Rule) -> None:
    if not rule.match and (rule.argv or rule.path or rule.host):
        raise RuleFileError(f"{rule.source}: the rule {rule.id} needs an example in match")
    for example in (*rule.match, *rule.not_match):
        fits = matches(rule, _example_subject(rule, example), _EXAMPLE_PLACES)
        if example in rule.match and not fits:
            raise RuleFileError(f"{rule.source}: the rule {rule.id} does not match its example {example!r}")
        if example in rule.not_match and fits:
            raise RuleFileError(f"{rule.source}: the rule {rule.id} matches {example!r}, which is listed in not_match")


def _example_subject(rule: Rule, example: str) -> Subject:
    """Read an example as what the rule speaks of: a command, a URL or host, a path, or a tool's name."""
    if rule.argv:
        trace = Trace(commands=[_words(example)])
    elif rule.host:
        trace = Trace(hosts=[check_url(example).host if "://" in example else example])
    elif rule.path:
        home = example.replace("~", _EXAMPLE_PLACES.home, 1) if example.startswith("~/") else example
        path = posixpath.normpath(posixpath.join(_EXAMPLE_PLACES.roots[0], home))
        trace = Trace(paths=[(rule.op or PathOp.READ, path)])
    else:
        return Subject(tool=example, tool_digest=rule.tool_digest)
    return Subject(tool=rule.tool.replace("*", "x"), trace=trace)


def _words(line: str) -> tuple[str, ...]:
    """Split an example into the words that bash would make of it; one that is no plain command matches nothing."""
    try:
        match parse(line).pipelines:
            case (Pipeline(commands=(Simple(words=words),)),):
                return expand_words(words, Variables(_EXAMPLE_PLACES.home), UNKNOWN) or (UNKNOWN,)
            case _:
                return (UNKNOWN,)
    except (ShellSyntaxError, BudgetError):
        return (UNKNOWN,)


HEAD = f"version = {FORMAT_VERSION}\n"


def render_rules(rules: Iterable[Rule]) -> str:
    """Write a whole rule file."""
    return HEAD + "".join(f"\n{render_rule(rule)}" for rule in rules)


def render_rule(rule: Rule, note: str = "") -> str:
    """Write one rule under its `[[rule]]` line; `note` becomes a comment."""
    (verdict,) = (name for name, meant in _VERDICTS.items() if meant is rule.verdict)
    written = {**{name: getattr(rule, name) for name in _WRITTEN}, "verdict": verdict}.items()
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
