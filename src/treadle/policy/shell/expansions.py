"""Judges what the expansions of a word run and show."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.dangers import VARIABLES_SAFE_TO_SHOW, VARIABLES_SECRET
from treadle.policy.shell.expand import expand_text, only_calculates
from treadle.policy.shell.scene import Feed, Follow, Scene
from treadle.policy.shell.syntax import Arithmetic, Literal, Parameter, ProcessSubstitution, Segment, Substitution
from treadle.protocol.tools import Risk

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
                follow(segment.script, replace(scene, feed=Feed(upstream=((UNKNOWN,),) if is_output else ())))
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
    """Judge what a calculation runs, and whether it does more than calculate."""
    findings = judge_segments(expression.inner, scene, follow)
    if not only_calculates(expression, scene.variables):
        findings.append(
            unclear(
                "evaluated-text",
                f"{expression.text.strip()!r}: arithmetic evaluates values that are not known numbers",
            )
        )
    return findings
