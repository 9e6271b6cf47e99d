"""Commands of the shell itself that change its state, run text or test something."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import fits, is_glob, is_static, split_words
from treadle.policy.shell.judging.scene import Scene
from treadle.policy.shell.judging.surroundings import judge_assignment
from treadle.policy.shell.tables.dangers import PRINTS_SECRETS, VARIABLES_HARMLESS, VARIABLES_SECRET
from treadle.protocol.tools import Risk

FILE_TESTS = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef"})
"""Operators of tests that look at the file whose name follows."""

_BINARY_TESTS = frozenset({"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"})
_ALL_TESTS = FILE_TESTS | _BINARY_TESTS | {"-z", "-n"}
_ASSIGNING = frozenset({"read", "mapfile", "readarray", "getopts"})
_EVALUATED = re.compile(r"\$\(|`|\$\{")
_CALCULATES = re.compile(r"-\w*[in]")
_SUBSCRIPT = re.compile(r"\[[^\]\n]*(\$\(|`)")


def judge_evaluated(text: str, scene: Scene) -> list[Finding]:
    """Judge text that the shell may evaluate a second time, as it does with subscripts and arithmetic."""
    if _EVALUATED.search(text):
        return [dangerous("evaluated-text", "text in quotes is evaluated a second time"), *scene.script(f": {text}")]
    if "[" in text or not is_static(text):
        return [unclear("evaluated-text", "the text may be evaluated a second time")]
    return []


def judge_subscripts(texts: Iterable[str], scene: Scene) -> list[Finding]:
    """Judge values that a calculation would evaluate wherever the line uses them as a number."""
    return [found for text in texts if _SUBSCRIPT.search(text) for found in judge_evaluated(text, scene)]


def _given(scene: Scene) -> list[Finding]:
    """Judge what a command that sets variables reads."""
    fed = (word for command in scene.feed.upstream for word in command[1:])
    return judge_subscripts((scene.feed.text or "", *fed), scene)


def _eval(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    given = [word for word in words if word != "--"]
    text = " ".join(given[:1] if name == "trap" else given)
    if not is_static(text):
        return [dangerous("unknown-script", f"{name} runs text that is unknown until it runs")]
    return [unclear("shell", f"{name} runs text"), *scene.script(text)]


def _source(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a file in this shell")]
    if any(not is_static(word) or word.startswith(("/dev/", "/proc/")) for word in words[:1]):
        findings.append(dangerous("unknown-script", f"{name} runs text that is unknown until it runs"))
    return findings + [found for word in words for found in scene.mentions(word)]


def _state(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge what sets or shows variables, or changes how the shell works."""
    given = [word.partition("=") for word in words]
    if name == "export" and given and all(is_set and VARIABLES_HARMLESS.fullmatch(one) for one, is_set, _ in given):
        return [finding for variable, _, value in given for finding in judge_assignment(variable, value)]
    findings = [unclear("shell-state", f"{name} changes the state of the shell")]
    findings.extend(_given(scene) if name in _ASSIGNING else [])
    shows = name in PRINTS_SECRETS and "-n" not in words
    for word, (variable, is_set, value) in zip(words, given, strict=True):
        # An integer is calculated, and a name of a name is looked up: now, or where it is used.
        findings.extend(judge_evaluated(word, scene))
        if is_set or not (shows or name == "unset"):
            findings.extend(judge_assignment((value if "-n" in words else "") or variable.rstrip("+"), value))
        elif VARIABLES_SECRET.fullmatch(word):
            findings.append(dangerous("prints-environment", f"{name} shows the variable {word}"))
        if is_glob(value) and any(_CALCULATES.match(option) for option in words):
            findings.append(dangerous("evaluated-text", "a value in brackets is evaluated a second time"))
    return findings


def _alias(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    values = [word.partition("=")[2] for word in words if "=" in word]
    runs = [found for value in values for found in _eval("alias", [value], scene)]
    return [unclear("shell-state", "alias changes what later words mean"), *runs]


def _change_directory(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    operands = [word for word in words if word not in ("--", "-P", "-L")]
    if name != "cd" or len(operands) > 1 or any(word.startswith("-") for word in operands):
        return [unclear("unknown-directory", "the directory is unknown until it runs")]
    return scene.path(operands[0] if operands else scene.context.home or "/", PathOp.LIST)


def _flow(name: str, words: Sequence[str], _scene: Scene) -> list[Finding]:
    if all(re.fullmatch(r"\d{1,2}(\.\d+)?s?" if name == "sleep" else r"\d{1,3}", word) for word in words):
        return [Finding(Risk.READ, "reader", f"{name} controls the flow of the line")]
    return [unclear("shell-state", f"{name} with something unknown, or for a long time")]


def _test(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    if name == "[" and (not words or words[-1] != "]"):
        return [unclear("syntax", "[ is not closed")]
    # -v evaluates a subscript, and -eq does in some shells.
    if any(word == "-v" or ("[" in word and word != "[") for word in words):
        found = [found for word in words for found in judge_evaluated(word, scene)]
        return [unclear("evaluated-text", "the test may evaluate a subscript"), *found]
    if _may_evaluate(words[:-1] if name == "[" else words):
        text = "a word of the test is unknown and could be -v, which evaluates the next one"
        return [unclear("evaluated-text", text)]
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


BUILTINS: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    **dict.fromkeys(("eval", "trap"), _eval),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(split_words("unset let getopts read mapfile readarray shift wait bind set"), _state),
    **dict.fromkeys(split_words("declare typeset local readonly export"), _state),
    "alias": _alias,
    **dict.fromkeys(("cd", "pushd", "popd", "chdir"), _change_directory),
    **dict.fromkeys(("exit", "return", "break", "continue", "sleep"), _flow),
    **dict.fromkeys(("test", "["), _test),
}
"""Judges by command name."""
