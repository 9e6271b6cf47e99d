"""Permissions of Claude Code as rules: an allow never wider than "always allow" offers, a deny or ask never weaker."""

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from treadle.app.importing.server_permissions import approved_tools, tool_globs
from treadle.app.importing.transcripts import hides_something
from treadle.policy.allowances import decide_and_offer, rule_id, rule_of
from treadle.policy.decide import SERVER_TOOLS, decide
from treadle.policy.decision_context import PolicyContext
from treadle.policy.findings import PathOp
from treadle.policy.rulefile import render_rule, with_examples
from treadle.policy.rules import Rule, Scope
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import Access, FetchUrl, ReadPath, RunCommand, ToolSpec, WritePath

if TYPE_CHECKING:
    from treadle.app.servers.approved import ApprovedServer

_ENTRY = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_SERVER_ENTRY = re.compile(r"(mcp__[\w*-]+)()", re.ASCII)
_LONGEST = 500
_WILD = re.compile(r"[*?\[\]]")
_SHELL_SIGNS = re.compile(r"[;&|<>`$(){}\n]")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_READS = ("Read", "Grep", "Glob", "LS")
_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_NAMES = {Verdict.DENY: "deny", Verdict.REQUIRE_USER_CONFIRMATION: "ask"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What becomes of one entry: the `rules` that are taken, or why none is; `note` says how they differ from it."""

    entry: str
    verdict: Verdict
    rules: tuple[Rule, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class ImportContext:
    """Where entries are read: `context` is that of the folder they are about, `own` the folder of their file.

    `servers` are those that are configured there.
    """

    context: PolicyContext
    own: str
    specs: Mapping[str, ToolSpec] = field(default_factory=dict)
    servers: Sequence["ApprovedServer"] = ()

    @property
    def root(self) -> str:
        """The folder."""
        return self.context.roots[0]


class _LeftOutError(Exception):
    """No rule says this; the text says why."""


def permission_of(entry: object, verdict: Verdict, where: ImportContext) -> Permission:
    """Find the rules for one entry of `permissions.allow`, `deny` or `ask`."""
    if not isinstance(entry, str):
        return Permission(entry=repr(entry)[:80], verdict=verdict, note="it is not a text")
    try:
        if len(entry) > _LONGEST or hides_something(entry):
            raise _LeftOutError("it is too long, or has characters that cannot be seen")
        found = (_SERVER_ENTRY if entry.strip().startswith(SERVER_TOOLS) else _ENTRY).fullmatch(entry.strip())
        if found is None:
            raise _LeftOutError("it is not understood")
        tool, about = found[1], (found[2] or "").strip()
        if tool.startswith(SERVER_TOOLS):
            if verdict is Verdict.ALLOW:
                rules, note = _allowed_tools(tool, where)
            else:
                rules = tuple(Rule(id="", verdict=verdict, tool=one) for one in tool_globs(tool, where.servers))
                note = ""
        elif verdict is Verdict.ALLOW:
            rules, note = _allowed(tool, about, where)
        else:
            rules, note = _denied(tool, about, verdict, where)
        if verdict is not Verdict.ALLOW:
            rules = tuple(replace(one, id=f"{_NAMES[verdict]}-{rule_id(one)}") for one in rules)
    except _LeftOutError as error:
        return Permission(entry=entry[:_LONGEST], verdict=verdict, note=str(error))
    written = tuple(one for rule in rules if (one := with_examples(rule)) is not None and _is_utf8(render_rule(one)))
    if len(written) < len(rules):
        return Permission(entry=entry, verdict=verdict, note="a rule file cannot hold it")
    return Permission(entry=entry, verdict=verdict, rules=written, note=note)


def _is_utf8(text: str) -> bool:
    """Whether a text can be written: the name of a folder may be of any bytes."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _allowed(tool: str, about: str, where: ImportContext) -> tuple[tuple[Rule, ...], str]:
    """Ask the policy what "always allow" would offer for the call, and take no more than that and than the entry."""
    note = ""
    match tool:
        case "Bash":
            command, is_prefix = _prefix(about)
            if not command or _WILD.search(command):
                raise _LeftOutError("it would allow any command")
            access: Access = RunCommand(command=command, cwd=where.root)
            rule = _offered(access, where.specs["execute_command"], where)
            if not is_prefix or rule.exact:
                rule = _exactly(rule, command, access, where)
                note = "only with exactly these words" if is_prefix else ""
                if is_prefix and len(rule.argv) == 1:
                    raise _LeftOutError(f"it would allow everything that {rule.argv[0]} can do")
            note = f"{note}{', ' if note else ''}in {where.root} only"
            rule = replace(rule, workspace=where.root)
        case "WebFetch":
            host = _host(about)
            if host.startswith("."):
                raise _LeftOutError("it would allow more than one host")
            rule = _offered(FetchUrl(url=f"https://{host}/"), where.specs["web_fetch"], where)
        case _ if tool in (*_READS, *_EDITS):
            if re.match(r"/(?!/)", about):
                raise _LeftOutError("what `/` stands for differs between versions; // is the root of the disk")
            if not about or _WILD.search(about):
                raise _LeftOutError("it would allow more than one file; the mode `edits` allows edits in the folder")
            (path,) = {_absolute(one, where) for one in _patterns(about, where)[:1]}
            reads = tool in _READS
            rule = _offered(
                ReadPath(path=path) if reads else WritePath(path=path),
                where.specs["read_file" if reads else "write_to_file"],
                where,
            )
        case _:
            raise _LeftOutError("Treadle has no such tool")
    rule = replace(rule, reason="")
    return (replace(rule, id=rule_id(rule)),), note


def _allowed_tools(entry: str, where: ImportContext) -> tuple[tuple[Rule, ...], str]:
    """Take the tools of servers that are approved here, each exactly as it was approved."""
    if "*" in entry.removesuffix("__*"):
        raise _LeftOutError("it names tools by a pattern")
    specs = approved_tools(entry, where.servers)
    if not specs:
        raise _LeftOutError(
            "no such tool is approved here, or its declaration is too long: see `treadle mcp tools NAME --approve`"
        )
    rules: list[Rule] = []
    for spec in specs:
        try:
            rule = replace(_offered(None, spec, where), reason="")
        except _LeftOutError:
            if len(specs) == 1:
                raise
            continue
        rules.append(replace(rule, id=rule_id(rule)))
    if not rules:
        raise _LeftOutError("Treadle offers no `always` for any of them, or they run without asking already")
    return tuple(rules), f"as approved now: {', '.join(rule.tool for rule in rules)}"


def _offered(access: Access | None, spec: ToolSpec, where: ImportContext) -> Rule:
    decision = decide_and_offer(spec, {}, () if access is None else (access,), where.context)
    if decision.verdict is Verdict.ALLOW:
        raise _LeftOutError("it runs without asking already")
    if len(decision.offers) != 1:
        raise _LeftOutError("Treadle offers no `always` for it: a rule would allow more than it says")
    return replace(rule_of(decision.offers[0]), scope=Scope.USER)


def _exactly(rule: Rule, command: str, access: Access, where: ImportContext) -> Rule:
    """Narrow a rule down to the words of the command."""
    narrow = replace(rule, argv=tuple(_words(command)), exact=True, workspace=where.root)
    rules = replace(where.context.rules, rules=(*where.context.rules.rules, narrow))
    allows = decide(where.specs["execute_command"], {}, (access,), replace(where.context, rules=rules)).verdict
    if allows is not Verdict.ALLOW:
        raise _LeftOutError("a rule cannot say exactly these words")
    return narrow


def _denied(tool: str, about: str, verdict: Verdict, where: ImportContext) -> tuple[tuple[Rule, ...], str]:
    match tool:
        case "Bash":
            return _denied_command(about, verdict)
        case "WebFetch":
            if not about:
                return (Rule(id="", verdict=verdict, tool="web_fetch"),), ""
            return (Rule(id="", verdict=verdict, host=_host(about)),), "also for commands"
        case _ if tool in (*_READS, *_EDITS):
            op = PathOp.READ if tool in _READS else PathOp.WRITE
            if not about:
                return (Rule(id="", verdict=verdict, path="/**", op=op),), "for all files, also for commands"
            return tuple(Rule(id="", verdict=verdict, path=path, op=op) for path in _patterns(about, where)), (
                "also for commands"
            )
        case _:
            raise _LeftOutError("Treadle has no such tool")


def _denied_command(about: str, verdict: Verdict) -> tuple[tuple[Rule, ...], str]:
    if about in ("", "*", ":*"):
        return (Rule(id="", verdict=verdict, tool="execute_command"),), "for every command"
    command, is_prefix = _prefix(about)
    if _SHELL_SIGNS.search(command):
        raise _LeftOutError("a rule is about the words of one command")
    words = _words(command)
    plain = next((number for number, word in enumerate(words) if "*" in word), len(words))
    wider = plain < len(words)
    if not plain or "=" in words[0] or any(word.startswith("~") for word in words[:plain]):
        raise _LeftOutError("a rule names the program and its words as they are")
    if wider and plain == 1 and verdict is Verdict.DENY:
        raise _LeftOutError(f"a rule for it would deny all of {words[0]}")
    note = f"stricter: everything that begins with `{shlex.join(words[:plain])}`" if wider else ""
    return (Rule(id="", verdict=verdict, argv=tuple(words[:plain]), exact=not is_prefix and not wider),), note


def _prefix(about: str) -> tuple[str, bool]:
    """Part a command from the wildcard for any further words."""
    for ending in (":*", " *"):
        if about.endswith(ending):
            return about.removesuffix(ending).strip(), True
    return about, False


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _LeftOutError("its quotes do not end") from error
    if not words:
        raise _LeftOutError("it names no command")
    return words


def _host(about: str) -> str:
    domain = about.removeprefix("domain:")
    if domain == about or not _HOST.fullmatch(domain):
        raise _LeftOutError("it does not name a host")
    return domain.lower().removeprefix("*") if domain.startswith("*.") else domain.lower()


def _patterns(about: str, where: ImportContext) -> list[str]:
    """Read a line of a `.gitignore` as globs of rules: what it names, and everything below."""
    if about.startswith("!") or "\\" in about:
        raise _LeftOutError("a rule has no exceptions and no escapes")
    text = re.sub(r"\[[^\]]*\]", "?", about)  # any character in place of some: stricter
    bases, stem = [""], text
    if text.startswith("//"):
        bases, stem = ["/"], text.lstrip("/")
    elif text.startswith("~/"):
        bases, stem = ["~/"], text[2:]
    elif text.startswith("/"):  # versions differ in where that begins
        bases, stem = ["", f"{where.own}/", f"{posixpath.dirname(where.own)}/"], text[1:]
    elif text.startswith("./"):
        stem = text[2:]
    elif "/" not in text.rstrip("/"):
        bases = ["**/"]
    stem = posixpath.normpath(stem) if stem else "**"
    if stem.startswith("..") or stem == ".":
        raise _LeftOutError("it leads out of the folder")
    below = () if stem.endswith("**") else (f"{stem}/**",)
    return list(dict.fromkeys(f"{base}{one}" for base in bases for one in (stem, *below)))


def _absolute(pattern: str, where: ImportContext) -> str:
    if pattern.startswith("~/"):
        return posixpath.join(where.context.home, pattern[2:])
    return posixpath.join(where.root, pattern.removeprefix("**/"))
