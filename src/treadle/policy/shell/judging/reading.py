"""Programs that only read, judged by their tables: options first, then each operand by its place."""

import re
from collections.abc import Sequence

from treadle.policy.findings import Finding, PathOp, dangerous, is_plain, unclear
from treadle.policy.marks import UNKNOWN, as_glob, is_glob, is_static, shown
from treadle.policy.names import picks_secret
from treadle.policy.shell.grammar.expand import in_braces
from treadle.policy.shell.judging.builtins import judge_evaluated
from treadle.policy.shell.judging.interpreters import judge_outputs
from treadle.policy.shell.judging.scene import Scene
from treadle.policy.shell.tables.dangers import PRINTS_SECRETS, VARIABLES_DANGEROUS
from treadle.policy.shell.tables.options import read_arguments
from treadle.policy.shell.tables.readers import OBEY_NOTHING, readers
from treadle.protocol.tools import Risk

_SET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_TELLS_OF_SECRETS = re.compile(r"token|secret|pass|key|cred|auth|api", re.IGNORECASE)
_NUMBER_FORMAT = re.compile(r"%[-+ #0-9.*]*[diouxXeEfFgGaA]")


def judge_reader(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a program that has a table: within it the program only reads."""
    table = readers()[name]
    if table.operands == ("RAW",):
        return [Finding(Risk.READ, "reader", f"{name} prints its arguments"), *_raw(name, words, scene)]
    arguments = read_arguments(table, words)
    operands, kinds = arguments.operands, table.operands
    findings = [Finding(Risk.READ, "reader", f"{name} only reads")]
    strange = [word for word in arguments.strange if not (is_glob(word) and name in OBEY_NOTHING)]
    if kinds[:1] == ("PATTERN",):
        upstream = scene.feed.upstream
        if upstream and upstream[0][0] in PRINTS_SECRETS and _TELLS_OF_SECRETS.search(" ".join(words)):
            findings.append(dangerous("prints-environment", f"{name} picks secret variables out of the environment"))
        # The first operand is the pattern, unless an option gave it.
        pattern = () if arguments.has("-e", "-f", "--regexp", "--file", "--files", "--type-list") else operands[:1]
        operands, kinds = operands[len(pattern) :], kinds[1:]
        strange = [word for word in strange if not ("--" in words and word in pattern)]
        if not operands and not scene.feed.is_pipe and (name == "rg" or arguments.has("-r", "--recursive")):
            operands = (".",)
    if name == "ps" and (operands or "env" in "".join(arguments.values("-o"))):
        return _processes(operands)
    findings.extend(_strange(name, word) for word in strange)
    for option in arguments.given:
        findings.extend(_judge_picked(option.value) if option.kind == "%" and option.value is not None else [])
    last = kinds[-1] if kinds and kinds[-1].endswith("*") else ""
    for place, operand in enumerate(operands):
        kind = (kinds[place] if place < len(kinds) else last).rstrip("*")
        findings.extend(_judge_operand(name, kind, operand, scene))
    return findings if is_plain(findings) else [*findings, *named_in(words, scene)]


def _processes(letters: Sequence[str]) -> list[Finding]:
    """Judge the letters of ps that have no dash: one of them shows the environment of other processes."""
    if any("e" in word for word in letters) or not letters:
        return [dangerous("prints-environment", "prints the environment of other processes")]
    if all(re.fullmatch(r"[afjlruvxwS]+", word) for word in letters):
        return [Finding(Risk.READ, "reader", "ps only reads")]
    return [unclear("unknown-option", "ps: the letters are not known to be harmless")]


def _raw(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    shown = [found for word in words if is_glob(word) for found in scene.path(word, PathOp.LIST)]
    if name == "printf" and _NUMBER_FORMAT.search("".join(words[:1])):
        # Other shells than bash calculate what they print as a number, subscripts included.
        shown.extend(found for word in words[1:] for found in judge_evaluated(word, scene))
    if name == "printf" and words and words[0].startswith("-") and words[0] != "--":
        text = unclear("evaluated-text", "printf -v sets a variable and may evaluate a subscript")
        if VARIABLES_DANGEROUS.fullmatch("".join(words[1:2])):
            shown.append(dangerous("variable", f"printf sets {words[1]}"))
        return [text, *shown, *(found for word in words[:2] for found in judge_evaluated(word, scene))]
    if name == "printf" and len(words) > 1 and not is_static(words[0][:1]):
        shown.append(unclear("evaluated-text", "the format is unknown and could be -v, which sets a variable"))
    return shown


def named_in(words: Sequence[str], scene: Scene) -> list[Finding]:
    """Find what a command names or writes that is protected, whatever its words mean to it."""
    named = [found for word in words for found in scene.mentions(word)] if not scene.is_search else []
    return [*named, *judge_outputs(words, scene)]


def _strange(name: str, word: str) -> Finding:
    """Say why a word asks: an option that is not known, or something that may turn out to be one."""
    if word.startswith("-") and is_static(word):
        return unclear("unknown-option", f"{name}: {word!r} is not an option known to be harmless")
    text = f"{name}: {shown(word)!r} is unknown until it runs and could be an option; spell it out, or put -- before it"
    if is_glob(word):
        text = f"{name}: {shown(word)!r} could match a file whose name is an option; write {'./' + shown(word)!r}"
    return unclear("unknown-option", text)


def _judge_picked(text: str) -> list[Finding]:
    """Judge a pattern that says which files are read."""
    if text.startswith("!"):
        return []
    for piece in in_braces(_SET.sub("*", text.replace("\\", ""))):
        name = picks_secret(as_glob(piece))
        if name is not None:
            return [dangerous("secret-read", f"reads {name}, which is protected")]
    if UNKNOWN in text:
        return [unclear("unknown-pattern", "the pattern that picks the files is unknown until it runs")]
    return []


def _judge_operand(name: str, kind: str, operand: str, scene: Scene) -> list[Finding]:
    match kind:
        case "TEXT":
            return scene.path(operand, PathOp.LIST) if is_glob(operand) else []
        case "LIST" | "READ":
            return scene.path(operand, PathOp(kind.lower()))
        case "SETS":
            return [] if operand.startswith("+") else [dangerous("dangerous-operand", f"{name} changes the system")]
        case _:
            text = f"{name}: {shown(operand)!r} is one operand more than is known to be harmless"
            return [unclear("unknown-operand", text)]
