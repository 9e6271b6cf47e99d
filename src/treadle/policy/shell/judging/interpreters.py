"""Shells, interpreters, sed, awk and jq: the text that they are given, and where it comes from."""

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import ANY, SPLIT, STAR, UNKNOWN, is_static, split_words
from treadle.policy.shell.grammar.expand import Variables
from treadle.policy.shell.judging.reach import judge_inner_text, judge_named_places, judge_reach
from treadle.policy.shell.judging.scene import Scene
from treadle.policy.shell.tables.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.tables.dangers import CODE, SQL, SQL_CLIENTS
from treadle.protocol.tools import Risk

SHELLS = frozenset(
    split_words("sh bash zsh dash ksh mksh ash fish tcsh csh rbash yash elvish nu xonsh pwsh powershell")
)
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|nodejs|deno|bun|rscript|julia|groovy|scala|tclsh|wish|guile|racket|elixir|iex|erl"
    r"|swift|ghci|runghc|ocaml|ts-node|tsx|jshell|kotlinc|clojure|bb|luajit|osascript|ipython|irb|r|octave|sqlite)"
    r"[0-9.]*w?"
)
_TASK_RUNNERS = frozenset({"artisan", "manage.py", "console", "rails", "rake", "django-admin"})
_CODE_OPTIONS = re.compile(
    r"-[a-zA-Z0-9]*[ceErpFR]|--(eval|exec|print|command|execute)|-?eval|(--eval=|-e|-c).*", re.DOTALL
)


@lru_cache(maxsize=1024)
def is_interpreter(name: str) -> bool:
    """Whether a program runs program text in its own language."""
    return _INTERPRETERS.fullmatch(name) is not None


def judge_shell(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a shell: its script is judged as a line of its own."""
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a script")]
    if name in ("pwsh", "powershell"):
        findings.extend(scan_code(" ".join(words), scene))
        if any(re.fullmatch(r"-e(c|n\w*)?", word, re.IGNORECASE) for word in words):
            findings.append(dangerous("opaque-code", f"{name} runs a script that cannot be read"))
    is_command = False
    pending = list(words)
    while pending and pending[0][:1] in ("-", "+"):
        option = pending.pop(0)
        if option in ("-", "--"):
            break
        if option.startswith(("--rcfile", "--init-file")):
            findings.append(dangerous("shell", f"{name} {option} runs another file first"))
        if option in ("-o", "+o", "-O", "+O"):
            del pending[:1]
        is_command |= re.fullmatch(r"[-+]\w*c\w*|(?i:--?command|-encodedcommand)", option) is not None
    if is_command:
        script = _judge_script(pending[0], pending[1:], scene) if pending else [dangerous("shell", f"{name} -c alone")]
        return findings + script
    if pending and not any(re.fullmatch(r"-\w*s\w*", word) for word in words):
        findings.extend(found for word in pending for found in scene.mentions(word))
        is_known = is_static(pending[0]) and not pending[0].startswith(("/dev/", "/proc/"))
        return findings if is_known else [*findings, _unknown(name)]
    return findings + _judge_input(name, scene)


def _unknown(name: str) -> Finding:
    return dangerous("unknown-script", f"{name} runs text that is unknown until it runs")


def _judge_script(script: str, operands: Sequence[str], scene: Scene) -> list[Finding]:
    if not is_static(script):
        return [_unknown("the shell"), *scan_code(script, scene)]
    values = {str(place): value for place, value in enumerate(operands)}
    every = SPLIT.join(operands[1:])
    variables = Variables(scene.variables.home, {**scene.variables.values, **values, "@": every, "*": every})
    return replace(scene, variables=variables).script(script, feed=scene.feed)


def _judge_input(name: str, scene: Scene) -> list[Finding]:
    if scene.feed.is_pipe:
        return [dangerous("piped-script", f"{name} runs what comes through the pipe")]
    text = scene.feed.text or ""
    return scene.script(text) if is_static(text) else [_unknown(name)]


def judge_interpreter(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge an interpreter: always a question, dangerous when the program text shows danger or comes from a pipe."""
    findings = [Finding(Risk.EXECUTE, "interpreter", f"{name} runs a program")]
    if re.fullmatch(r"(python|pypy)[0-9.]*", name) and "-m" in words:
        module = tuple(words[list(words).index("-m") + 1 :])
        findings.extend(found for word in words for found in scene.mentions(word))
        return findings + (scene.command(module) if module else [])
    tasks = {posixpath.basename(word) for word in words[:2]} & {*_TASK_RUNNERS, "setup.py"}
    told = [word for word in words[1:] if DESTRUCTIVE_VERBS.fullmatch(word) or word in ("upload", "register")]
    if tasks and told:
        findings.append(dangerous("dangerous-form", f"{told[0]} destroys or publishes something"))
    findings.extend(judge_reach(name, words, scene))
    has_program = False
    for place, word in enumerate(words):
        findings.extend(scene.mentions(word))
        is_code = _CODE_OPTIONS.fullmatch(word) is not None
        findings.extend(scan_code(" ".join(words[place : place + 2]), scene) if is_code else [])
        has_program |= is_code or not word.startswith("-")
    if has_program:
        return findings
    if scene.feed.is_pipe:
        findings.append(dangerous("piped-script", f"{name} runs what comes through the pipe"))
    return findings + (scan_code(scene.feed.text, scene) if scene.feed.text is not None else [])


def scan_code(text: str, scene: Scene) -> list[Finding]:
    """Look through program text of any language for words that mean harm, and for protected names."""
    findings: list[Finding] = []
    match = CODE.search(text)
    if match is not None:
        findings.append(dangerous("opaque-code", f"program text contains {match.group().strip()!r}"))
    findings.extend([*judge_named_places(text, scene), *judge_inner_text(text, scene)])
    if UNKNOWN in text:
        findings.append(_unknown("the program"))
    cleaned = text.translate({ord(mark): " " for mark in (UNKNOWN, STAR, ANY, SPLIT)})
    tokens = dict.fromkeys(re.split(r"[\s'\"`()\[\]{};,<>|&]+", cleaned))
    return [*findings, *(found for token in tokens if token for found in scene.mentions(token))]


def is_database(name: str) -> bool:
    """Whether a program sends statements to a database."""
    return name in SQL_CLIENTS


def judge_database(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a database client: a question, and dangerous when a statement changes something."""
    findings = [Finding(Risk.REMOTE, "database", f"{name} sends statements to a database, which can change it")]
    for text in [*words, scene.feed.text or "", *(" ".join(command) for command in scene.feed.upstream)]:
        findings.extend(scene.mentions(text))
        match = SQL.search(text)
        if match is not None:
            findings.append(dangerous("database", f"the statement contains {match.group().strip()!r}"))
    return findings


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
