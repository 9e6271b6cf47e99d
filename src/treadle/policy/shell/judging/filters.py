"""sed, awk, jq and their like: a few plain forms only read; whatever else their little programs do is not followed."""

import re
from collections.abc import Sequence

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.shell.judging.scene import Scene
from treadle.protocol.tools import Risk

LANGUAGES = {
    **dict.fromkeys(("sed", "gsed"), "sed"),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "awk"),
    **dict.fromkeys(("jq", "yq", "gojq"), "jq"),
}
"""The languages by program name."""

_STEP = r"(\.|(\.?\[\d*\]|\.\w+)+|keys|length|type)"
_PLAIN = {
    "sed": re.compile(r"(\d+|\$)(,(\d+|\$))?[pd]|s([/|#,])((?!\4)[^\\\n\[])*\4((?!\4)[^\\\n])*\4[gp\d]{0,2}"),
    "awk": re.compile(r"\{ ?print( ?\$(\d+|NF)(, ?\$(\d+|NF))*)? ?\}|NR ?[<>=]=? ?\d+"),
    "jq": re.compile(rf"{_STEP}( ?\| ?{_STEP})*"),
}
"""By language: programs that only print."""

_HARMLESS = {"sed": r"-[nEru]+", "awk": r"-F[\w,:;|\t-]", "jq": r"-[rcSe]+|--raw-output"}
_MAY_RUN = re.compile(
    r"\bsystem\b|\bgetline\b|/inet[46]?/|@load|\bENVIRON\b|(?<!\|)\|(?!\|)\s*\"|\"\s*\||\|&"
    r"|[^\w\s][gpIiMm0-9]*e[gpIiMm0-9]*\s*($|[;}\n])|(^|[^\w\s]|[\s\d])e(\s|$)|^(-[liWE].*|--(load|exec|include).*)"
)
_SECRETS = re.compile(
    r"\$ENV\b|(?<!(?<!\.)\.)\benv\b|\binput_filename\b|\bstrenv\b|\benvsubst\b|\bload|\binclude\b|\bimport\b"
    r"|\$__prog|\bsystem\b"
)
_TARGET = re.compile(r"""(?:>>?\s*\(?\s*"|(?:^|[;}\s\d$/])[wW]\s+)([^"\n;}]+)""")
_NO_NAME = re.compile(r"[*\\^\[]")
_FROM_FILE = re.compile(r"-\w*[fE]|--file|--exec|-f-|--from-file")


def judge_filter(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge sed, awk, jq and their like."""
    language = LANGUAGES[name]
    pending = list(words)
    while pending and re.fullmatch(_HARMLESS[language], pending[0]):
        pending.pop(0)
    in_place = language == "sed" and pending[:1] == ["-i"]
    program, *files = pending[in_place:] or [""]
    is_plain = name != "yq" and is_static(program) and _PLAIN[language].fullmatch(program) is not None
    if not is_plain or any(file.startswith("-") or "=" in file or not is_static(file[:1]) for file in files):
        return _search(name, words, scene, language)
    found = [one for file in files for one in scene.path(file, PathOp.READ)]
    if not in_place:
        return [Finding(Risk.READ, "reader", f"{name} only prints"), *found]
    return [*found, *(one for file in files for one in scene.path(file, PathOp.WRITE))]


def _search(name: str, words: Sequence[str], scene: Scene, language: str) -> list[Finding]:
    """Look for danger in what is not followed: protected names, written files, and words that run something."""
    findings = [unclear("opaque-code", f"{name} runs a program in its own language, which may do more than print")]
    fed = scene.feed.text or ""
    program = next((word for word in words if not word.startswith("-")), "")
    changes = language == "sed" and any(re.match(r"-\w*[iI]|--in-place", word) for word in words)
    op = PathOp.WRITE if changes or (name == "yq" and "-i" in words) else PathOp.READ
    for text in (*words, fed):
        code = text if language == "awk" else re.sub(r"^(--[\w-]+=|-\w)", "", text)
        match = (_SECRETS if language == "jq" else _MAY_RUN).search(code)
        if match is not None:
            findings.append(dangerous("opaque-code", f"the {name} program contains {match.group().strip()!r}"))
        written = [one for target in _TARGET.findall(code) for one in scene.path(target.strip(), PathOp.WRITE)]
        findings.extend(one for one in written if one.risk is Risk.CRITICAL)
        tokens = [text, *re.split(r"[\s'\"(){};,]+", text.replace(UNKNOWN, " "))]
        if name != "jq" or text != program:
            named = [one for token in tokens if not _NO_NAME.search(token) for one in scene.mentions(token)]
            only_read = language == "jq" or (text != program and "=" not in text and op is PathOp.READ)
            findings.extend(one for one in named if one.rule == "secret-read" or not only_read)
        if text and not text.startswith("-"):
            findings.extend(one for one in scene.path(text, op) if one.path or one.risk is Risk.CRITICAL)
    if any(_FROM_FILE.fullmatch(word) for word in words) and (scene.feed.is_pipe or UNKNOWN in fed):
        findings.append(dangerous("piped-script", f"{name} may run its input"))
    return findings
