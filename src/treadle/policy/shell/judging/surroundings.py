"""Judges what stands around a command: variables that it sets, expansions of its words, and redirections."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, split_words
from treadle.policy.operations import PathOp
from treadle.policy.shell.grammar.expand import expand_text, expand_word
from treadle.policy.shell.grammar.syntax import (
    Arithmetic,
    Literal,
    Parameter,
    ProcessSubstitution,
    Redirect,
    Segment,
    Substitution,
)
from treadle.policy.shell.judging.lists import fed_by
from treadle.policy.shell.judging.scene import FREE_TARGETS, Follow, PipedInput, Scene
from treadle.policy.shell.tables.dangers import (
    VARIABLES_DANGEROUS,
    VARIABLES_HARMLESS,
    VARIABLES_SAFE_TO_SHOW,
    VARIABLES_SECRET,
)
from treadle.protocol.tools import Risk

_PLAIN_VALUE = re.compile(r"[\w.@+:-]*|[A-Z]\w+(/[A-Z][\w-]+){1,2}")
"""A word, or the name of a time zone; a path would name a file to read."""


_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_READ_BY_PROGRAMS = frozenset(
    split_words("""
    http_proxy https_proxy ftp_proxy all_proxy no_proxy rsync_proxy histchars auto_resume path fpath cdpath manpath
    mailpath module_path fignore watch prompt argv status
""")
)
"""Names in small letters that mean something after all: to programs, or to a shell (the last ones to zsh)."""


_SEARCH_PATHS = frozenset({"PYTHONPATH", "NODE_PATH"})
_OWN_FOLDERS = re.compile(r"(\./)?\w[\w-]*(/\w[\w-]*)*/?(:(\./)?\w[\w-]*(/\w[\w-]*)*/?)*")
"""Named folders below the directory that the line runs in: the code of the project."""


def _is_own(name: str) -> bool:
    if name in _READ_BY_PROGRAMS or VARIABLES_DANGEROUS.fullmatch(name):
        return False
    return _OWN_NAME.fullmatch(name) is not None


def judge_assignment(name: str, value: str, *, alone: bool = False) -> list[Finding]:
    """Judge one variable that is set, for one command or (`alone`) for the rest of the line.

    A name in small letters is by custom the line's own: no program reads it, but for those that are listed.
    """
    if alone and _is_own(name):
        return [Finding(Risk.READ, "variable", f"{name} is a variable of this line")]
    if VARIABLES_HARMLESS.fullmatch(name):
        if is_static(value) and _PLAIN_VALUE.fullmatch(value):
            return [Finding(Risk.READ, "variable", f"{name} is harmless")]
        return [unclear("variable", f"{name} is set to something unknown or to a path")]
    if name.endswith("PAGER") and value in ("", "cat"):
        return [unclear("variable", f"{name} lets nothing page; leave it out, since no pager is started here")]
    if name in _SEARCH_PATHS and _OWN_FOLDERS.fullmatch(value):
        return [unclear("variable", f"{name} lets the code of {value} be loaded")]
    if VARIABLES_DANGEROUS.fullmatch(name):
        pager = "; leave it out, since no pager is started here" if name.endswith("PAGER") else ""
        return [dangerous("variable", f"{name} changes what later programs run or read{pager}")]
    if name in _READ_BY_PROGRAMS:
        return [Finding(Risk.EXECUTE, "variable", f"sets the variable {name}, which programs or shells read")]
    return [
        Finding(
            Risk.EXECUTE,
            "variable",
            f"sets the variable {name}, which programs may read; a lower-case name would be the line's own",
        )
    ]


_PLAIN_OPERATORS = frozenset({"", ":-", "-", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":"})
_ARRAYS_OF_NUMBERS = frozenset({"PIPESTATUS", "BASH_VERSINFO"})
_OFFSETS = re.compile(r"[\d\s:-]*")
_NUMBERED = re.compile(r"\[(\d{1,2}|[@*])\]")


def judge_segments(segments: Iterable[Segment], scene: Scene, follow: Follow, *, gentle: bool = False) -> list[Finding]:
    """Judge what the expansions of a word run and show."""
    findings: list[Finding] = []
    for segment in segments:
        match segment:
            case Literal():
                continue
            case Parameter():
                findings.extend(_parameter(segment, scene, follow, gentle=gentle))
            case Substitution() | ProcessSubstitution():
                is_output = isinstance(segment, ProcessSubstitution) and segment.is_output
                follow(segment.script, replace(scene, feed=PipedInput(upstream=((UNKNOWN,),) if is_output else ())))
                if isinstance(segment, ProcessSubstitution):
                    findings.append(unclear("syntax", "a process substitution"))
            case Arithmetic():
                findings.extend(judge_arithmetic(segment, scene, follow))
            case _:
                assert_never(segment)
    return findings


def _parameter(parameter: Parameter, scene: Scene, follow: Follow, *, gentle: bool) -> list[Finding]:
    findings = judge_segments(parameter.operand, scene, follow, gentle=gentle)
    name = parameter.name
    if name in _ARRAYS_OF_NUMBERS and _NUMBERED.fullmatch(parameter.operator):
        pass
    elif parameter.operator.startswith("!") or parameter.operator == "@" or "[" in parameter.operator:
        findings.append(unclear("evaluated-text", f"${{{name}…}} evaluates a value"))
    elif parameter.operator not in _PLAIN_OPERATORS:
        findings.append(unclear("expansion", f"${{{name}{parameter.operator}…}} does more than show a value"))
        if parameter.operator in (":=", "="):
            findings.extend(judge_assignment(name, UNKNOWN))
    elif parameter.operator == ":" and not _OFFSETS.fullmatch(expand_text(parameter.operand, scene.variables)):
        findings.append(unclear("evaluated-text", f"${{{name}:…}} evaluates a value that is not a known number"))
    if VARIABLES_SECRET.fullmatch(name):
        text = f"uses the variable {name}, which looks like a secret"
        findings.append(
            Finding(Risk.EXECUTE, "secret-variable", text) if gentle else dangerous("secret-variable", text)
        )
    elif name not in VARIABLES_SAFE_TO_SHOW and name not in scene.variables.values:
        findings.append(unclear("unknown-variable", f"the value of {name} is unknown"))
    return findings


def judge_arithmetic(expression: Arithmetic, scene: Scene, follow: Follow) -> list[Finding]:
    """Judge what a calculation runs; the values that it holds are evaluated in turn, and it may set variables."""
    text = f"{expression.text.strip()!r}: arithmetic evaluates values and may set variables"
    return [*judge_segments(expression.inner, scene, follow), unclear("evaluated-text", text)]


def judge_redirects(
    redirects: Iterable[Redirect], scene: Scene, follow: Follow
) -> tuple[list[Finding], PipedInput | None]:
    """Judge redirections; gives the new input, if any."""
    findings: list[Finding] = []
    feed: PipedInput | None = None
    for redirect in redirects:
        scene.effort.spend()
        match redirect.target.segments:
            case (ProcessSubstitution(script=script, is_output=False),) if redirect.operator == "<":
                follow(script, replace(scene, feed=PipedInput()))
                feed = fed_by(script, scene)
                findings.append(unclear("redirect", "the input is another command"))
                continue
            case _:
                pass
        findings.extend(judge_segments(redirect.target.segments, scene, follow) if redirect.here is None else [])
        if redirect.here is not None:
            findings.extend(judge_segments(redirect.here.body, scene, follow))
            feed = PipedInput(text=expand_text(redirect.here.body, scene.variables))
        elif redirect.operator == "<<<":
            feed = PipedInput(text=expand_text(redirect.target.segments, scene.variables, scene.cwd, tilde=True))
        else:
            findings.extend(_redirect(redirect, scene))
            feed = PipedInput() if redirect.operator == "<" else feed
        if redirect.fd.startswith("{"):
            findings.append(unclear("redirect", "opens a descriptor and sets a variable"))
    return findings, feed


def _redirect(redirect: Redirect, scene: Scene) -> list[Finding]:
    if any(isinstance(segment, ProcessSubstitution) for segment in redirect.target.segments):
        return [unclear("redirect", "the input or output is another command")]
    targets = expand_word(redirect.target, scene.variables, scene.cwd)
    findings: list[Finding] = []
    for target in targets:
        if target.startswith(("/dev/tcp", "/dev/udp")):
            findings.append(dangerous("network-redirect", f"{target} is a connection to the network"))
        elif redirect.operator in (">&", "<&") and (target.rstrip("-").isdigit() or target == "-"):
            continue
        elif target not in FREE_TARGETS:
            op = PathOp.READ if redirect.operator == "<" else PathOp.WRITE
            findings.extend(scene.path(target, op))
    is_known = len(targets) == 1 and (is_static(targets[0]) or (redirect.operator == "<" and is_glob(targets[0])))
    if not is_known:
        findings.append(unclear("redirect", f"the file {redirect.target.text} is unknown until it runs"))
    return findings
