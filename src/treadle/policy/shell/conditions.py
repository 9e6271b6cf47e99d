"""Tests of files and values: `test` and `[`, and the operators that `[[` has too."""

from collections.abc import Sequence
from itertools import pairwise

from treadle.policy.findings import Finding, unclear
from treadle.policy.marks import fits, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.builtins import judge_evaluated
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

FILE_TESTS = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef"})
"""Operators of tests that look at the file whose name follows."""

_BINARY_TESTS = frozenset({"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"})
_ALL_TESTS = FILE_TESTS | _BINARY_TESTS | {"-z", "-n"}


def judge_test(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge `test` or `[`."""
    if name == "[" and (not words or words[-1] != "]"):
        return [unclear("syntax", "[ is not closed")]
    # -v evaluates a subscript, and -eq does in some shells.
    if any(word == "-v" or ("[" in word and word != "[") for word in words):
        found = [found for word in words for found in judge_evaluated(word, scene)]
        return [unclear("evaluated-text", "the test may evaluate a subscript"), *found]
    if _may_evaluate(words[:-1] if name == "[" else words):
        return [
            unclear("evaluated-text", "a word of the test is unknown and could be -v, which evaluates the next one")
        ]
    findings = [Finding(Risk.READ, "reader", "a test only reads")]
    for operator, word in pairwise(words):
        if operator in FILE_TESTS and is_static(word):
            findings.extend(scene.path(word, PathOp.LIST))
    return findings


def _may_evaluate(words: Sequence[str]) -> bool:
    """Whether a word that is not known could turn out to be the operator -v and the next one its operand.

    A word before a binary operator is never one, nor is one behind an operator.
    """
    places = (place for place, word in enumerate(words[:-1]) if not is_static(word) and fits(word, "-v"))
    return any(
        words[place + 1] not in _BINARY_TESTS and not (place and words[place - 1] in _ALL_TESTS) for place in places
    )
