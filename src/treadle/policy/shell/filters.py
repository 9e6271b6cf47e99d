"""sed, awk, jq and their like: a few plain forms only read; whatever else their little programs do is not followed."""

import re
from collections.abc import Callable, Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

_SED = re.compile(r"(\d+|\$)(,(\d+|\$))?[pd]|s([/|#,])((?!\4)[^\\\n\[])*\4((?!\4)[^\\\n])*\4[gp\d]{0,2}")
_AWK = re.compile(r"\{ ?print( ?\$(\d+|NF)(, ?\$(\d+|NF))*)? ?\}|NR ?[<>=]=? ?\d+")
_STEP = r"(\.|(\.?\[\d*\]|\.\w+)+|keys|length|type)"
_JQ = re.compile(rf"{_STEP}( ?\| ?{_STEP})*")
_PLAIN = {
    "sed": (_SED, re.compile(r"-[nEru]+")),
    "awk": (_AWK, re.compile(r"-F[\w,:;|\t-]")),
    "jq": (_JQ, re.compile(r"-[rcSe]+|--raw-output")),
}
"""By language: programs that only print, and options that change nothing about that."""

_HARM = re.compile(r"-[liWE].*|--(load|exec|include).*")
_MAY_RUN = re.compile(
    r"\bsystem\b|\bgetline\b|/inet[46]?/|@load|\bENVIRON\b|(?<!\|)\|(?!\|)\s*\"|\"\s*\||\|&"
    r"|[^\w\s][gpIiMm0-9]*e[gpIiMm0-9]*\s*($|[;}\n])|(^|[^\w\s]|[\s\d])e(\s|$)"
)
_JQ_SECRETS = re.compile(
    r"\$ENV\b|(?<!(?<!\.)\.)\benv\b|\binput_filename\b|\bstrenv\b|\benvsubst\b|\bload|\binclude\b|\bimport\b"
    r"|\$__prog|\bsystem\b"
)
_TARGET = re.compile(r"""(?:>>?\s*\(?\s*"|(?:^|[;}\s\d$/])[wW]\s+)([^"\n;}]+)""")
_NO_NAME = re.compile(r"[*\\^\[]")
_OPERAND = re.compile(r"[\w./-]+")
_FROM_FILE = re.compile(r"-\w*[fE]|--file|--exec|-f-|--from-file")


def _judge(name: str, words: Sequence[str], scene: Scene, language: str) -> list[Finding]:
    plain, harmless = _PLAIN[language]
    pending = list(words)
    while pending and harmless.fullmatch(pending[0]):
        pending.pop(0)
    in_place = language == "sed" and pending[:1] == ["-i"]
    program, *files = pending[in_place:] or [""]
    is_plain = name != "yq" and is_static(program) and plain.fullmatch(program) is not None
    if not is_plain or any(file.startswith("-") or "=" in file or not is_static(file[:1]) for file in files):
        return _search(name, words, scene, language)
    found = [found for file in files for found in scene.path(file, PathOp.READ)]
    if not in_place:
        return [Finding(Risk.READ, "reader", f"{name} only prints"), *found]
    writes = [found for file in files for found in scene.path(file, PathOp.WRITE)]
    return [Finding(Risk.WRITE, "writer", "sed -i changes files"), *found, *writes]


def _search(name: str, words: Sequence[str], scene: Scene, language: str) -> list[Finding]:
    """Look for danger in what is not followed: protected names, written files, and words that run something."""
    findings = [unclear("opaque-code", f"{name} runs a program in its own language, which may do more than print")]
    fed = scene.feed.text or ""
    pattern = _JQ_SECRETS if language == "jq" else _MAY_RUN
    program = next((word for word in words if not word.startswith("-")), "")
    for text in (*words, fed):
        if language == "awk" and _HARM.fullmatch(text):
            findings.append(dangerous("dangerous-option", f"{name} {text} loads other code"))
        code = text.partition("=")[2] if text.startswith("--") else text[2:] if text.startswith("-") else text
        match = pattern.search(code)
        if match is not None:
            findings.append(dangerous("opaque-code", f"the {name} program contains {match.group().strip()!r}"))
        for target in _TARGET.findall(code):
            findings.extend(one for one in scene.path(target.strip(), PathOp.WRITE) if one.risk is Risk.CRITICAL)
        tokens = (
            () if name == "jq" and text == program else (text, *re.split(r"[\s'\"(){};,]+", text.replace(UNKNOWN, " ")))
        )
        named = (one for token in dict.fromkeys(tokens) if not _NO_NAME.search(token) for one in scene.mentions(token))
        only_read = language == "jq" or (text != program and _OPERAND.fullmatch(text) is not None)
        findings.extend(one for one in named if one.rule == "secret-read" or not only_read)
    if any(_FROM_FILE.fullmatch(word) for word in words) and (scene.feed.is_pipe or UNKNOWN in fed):
        findings.append(dangerous("piped-script", f"{name} may run its input"))
    changes = language == "sed" and any(re.match(r"-\w*[iI]|--in-place", word) for word in words)
    op = PathOp.WRITE if changes or (name == "yq" and "-i" in words) else PathOp.READ
    for word in words:
        if not word.startswith("-"):
            findings.extend(one for one in scene.path(word, op) if one.path or one.risk is Risk.CRITICAL)
    return findings


def _for(language: str) -> Callable[[str, Sequence[str], Scene], list[Finding]]:
    return lambda name, words, scene: _judge(name, words, scene, language)


FILTERS: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    **dict.fromkeys(("sed", "gsed"), _for("sed")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _for("awk")),
    **dict.fromkeys(("jq", "yq", "gojq"), _for("jq")),
}
"""Judges by program name."""
