"""Commands of the shell itself that change its state or run text."""

import re
from collections.abc import Callable, Iterable, Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import is_glob, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.assignments import judge_assignment
from treadle.policy.shell.dangers import VARIABLES_DANGEROUS, VARIABLES_HARMLESS, VARIABLES_SECRET
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

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


def _eval(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    text = " ".join(word for word in words if word != "--")
    if not is_static(text):
        return [dangerous("unknown-script", "eval runs text that is unknown until it runs")]
    return [Finding(Risk.EXECUTE, "shell", "eval runs text"), *scene.script(text)]


def _source(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a file in this shell")]
    if any(not is_static(word) or word.startswith(("/dev/", "/proc/")) for word in words[:1]):
        findings.append(dangerous("unknown-script", f"{name} runs text that is unknown until it runs"))
    return findings + [found for word in words for found in scene.mentions(word)]


def _trap(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [unclear("shell", "trap runs text later")]
    for word in [word for word in words if word not in ("-l", "-p", "--", "-")][:1]:
        findings.extend(_eval("trap", [word], scene))
    return findings


def _state(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [unclear("shell-state", f"{name} changes the state of the shell")]
    findings.extend(_given(scene) if name in _ASSIGNING else [])
    for word in words:
        findings.extend(judge_evaluated(word, scene))
        if name in _ASSIGNING and VARIABLES_DANGEROUS.fullmatch(word):
            findings.extend(judge_assignment(word, ""))
    return findings


_READ_OPTION = re.compile(r"-[rs]+|-r?d.?|-r?n[1-9]\d*|-r?p")
_TAKES_A_WORD = re.compile(r"-r?[dp]")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def _read(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge `read`: it only fills variables, whose names count like those of an assignment."""
    pending = list(words)
    while pending and pending[0].startswith("-"):
        option = pending.pop(0)
        if not _READ_OPTION.fullmatch(option) or (_TAKES_A_WORD.fullmatch(option) and not pending):
            return _state(name, words, scene)
        if _TAKES_A_WORD.fullmatch(option):
            pending.pop(0)
    if not all(_VARIABLE.fullmatch(word) for word in pending):
        return _state(name, words, scene)
    found = [Finding(Risk.READ, "reader", "read reads a line of its input")]
    found.extend(_given(scene))
    return found + [finding for word in pending for finding in judge_assignment(word, "", alone=True)]


_SET = re.compile(r"[-+][eux]+")
_SET_WITH_NAME = re.compile(r"[-+][eux]*o")
_SET_NAMES = frozenset({"pipefail", "errexit", "nounset", "xtrace"})


def _set(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge `set`: what only makes the line stop earlier, fail otherwise or show its steps does nothing else."""
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if _SET_WITH_NAME.fullmatch(word) and pending and pending[0] in _SET_NAMES:
            pending.pop(0)
        elif not _SET.fullmatch(word):
            return _state(name, words, scene)
    return _state(name, words, scene) if not words else [Finding(Risk.READ, "reader", "set controls the shell")]


def _declare(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    given = [word.partition("=") for word in words]
    if name == "export" and given and all(is_set and VARIABLES_HARMLESS.fullmatch(one) for one, is_set, _ in given):
        return [finding for variable, _, value in given for finding in judge_assignment(variable, value)]
    findings = [unclear("shell-state", f"{name} shows or sets variables")]
    for word in words:
        variable, is_set, value = word.partition("=")
        if is_set:
            findings.extend(judge_assignment(variable.rstrip("+"), value))
            if is_glob(value) and any(_CALCULATES.match(option) for option in words):
                findings.append(dangerous("evaluated-text", "a value in brackets is evaluated a second time"))
            if value.startswith("(") or _EVALUATED.search(value):
                # An integer is calculated, and a name of a name is looked up: now, or where it is used.
                findings.extend(judge_evaluated(value, scene))
        if "-n" in words and VARIABLES_DANGEROUS.fullmatch(value if is_set else word):
            findings.extend(judge_assignment(value or word, ""))
        findings.extend(judge_evaluated(variable if is_set else word, scene))
        if not is_set and VARIABLES_SECRET.fullmatch(word):
            findings.append(dangerous("prints-environment", f"{name} shows the variable {word}"))
    return findings


def _alias(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [unclear("shell-state", "alias changes what later words mean") if words else _LOOK]
    for word in words:
        _, is_set, value = word.partition("=")
        if is_set:
            findings.extend(_eval("alias", [value], scene))
    return findings


_LOOK = Finding(Risk.READ, "reader", "shows the state of the shell")


def _change_directory(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    if any(word.startswith("-") and word not in ("-", "--", "-P", "-L") for word in words):
        return [unclear("unknown-option", f"{name}: an option is not known")]
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    if name != "cd" or operands[:1] == ["-"] or len(operands) > 1:
        return [unclear("unknown-directory", "the directory is unknown until it runs")]
    return scene.path(operands[0] if operands else scene.context.home or "/", PathOp.LIST)


def _leave(name: str, words: Sequence[str], _scene: Scene) -> list[Finding]:
    if all(is_static(word) and re.fullmatch(r"\d{1,3}", word) for word in words):
        return [Finding(Risk.READ, "reader", f"{name} controls the flow of the line")]
    return [unclear("shell-state", f"{name} with something unknown")]


def _sleep(_name: str, words: Sequence[str], _scene: Scene) -> list[Finding]:
    if len(words) == 1 and re.fullmatch(r"\d{1,2}(\.\d+)?s?", words[0]):
        return [Finding(Risk.READ, "reader", "sleep waits briefly")]
    return [unclear("waits", "sleep waits for a long time")]


BUILTINS: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    **dict.fromkeys(("unset", "let", "getopts", "mapfile", "readarray", "shift", "wait", "bind"), _state),
    **dict.fromkeys(("declare", "typeset", "local", "readonly", "export"), _declare),
    "read": _read,
    "set": _set,
    "alias": _alias,
    **dict.fromkeys(("cd", "pushd", "popd", "chdir"), _change_directory),
    **dict.fromkeys(("exit", "return", "break", "continue"), _leave),
    "sleep": _sleep,
}
"""Judges by command name."""
