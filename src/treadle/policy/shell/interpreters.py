"""Programs that run text in a language: that text, and the places to which it and words that are not known lead."""

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import dropwhile, pairwise
from types import MappingProxyType

from msgspec.structs import replace

from treadle.policy.decision_context import is_below
from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import MARKS, SPLIT, UNKNOWN, from_both_ends, is_static, word_set
from treadle.policy.shell.danger_forms import DESTRUCTIVE_VERBS
from treadle.policy.shell.dangers import CODE, SQL, SQL_CLIENTS
from treadle.policy.shell.expand import Variables
from treadle.policy.shell.shell_env import PipedInput, ProgramJudge, ShellEnv
from treadle.protocol.tools import Risk

_LONG = re.compile(
    r"of|--?(out\w*([-_]\w*)?|(log|save|write|backup|temp)[-_](file|dir|directory|document|path|to|batch))"
)


def judge_outputs(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Find what is written outside the workspace or over a protected file; nothing found is no proof of anything."""
    pairs = [(word.partition("="), after) for word, after in pairwise((*words, ""))]
    paths = [
        glued[2] if glued[1] else after
        for glued, after in pairs
        if "".join(glued) in ("-o", "-O") or _LONG.fullmatch(glued[0])
    ]
    found = [one for path in paths if path and is_static(path) for one in env.path(path, PathOp.WRITE)]
    of_dd = [glued[2] for glued, _ in pairs if glued[0] == "of"]
    found += [one for path in (*paths, *of_dd) if path for one in env.overwrites(path)]
    return [one for one in found if one.risk is Risk.CRITICAL]


MAX_PIECES = 40

_PLAIN_DEVICES = re.compile(r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd(/.*)?|shm(/.*)?)")
_TREES = re.compile(
    r"/+|/(home|root|etc|usr|var|bin|sbin|lib\w*|boot|opt|srv|Users|System|Library|Applications)/?|/(var/)?run/docker.sock"
)
_CUTS = re.compile(r"[;&|\n(){}`!%]+")
_BLANKS = re.compile(r"[\s,\[\]\"']+")
_TOKENS = re.compile(rf"[\s'\"`()\[\]{{}};,<>|&=!{''.join(MARKS)}]+")
_VALUES = re.compile("[=,]")
_DESTROYS = frozenset({"delete-tree", "delete-all", "delete-list", "write-outside", "control-write", "reach"})


def judge_reach(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Find an operand, the value of an option, or what a container gets of this machine, that is to be left alone."""
    for text in dict.fromkeys(text for word in words for text in (word, word.partition(":")[0], *_VALUES.split(word))):
        what = _place(text, env) if is_static(text) and text else None
        if what is not None:
            return [dangerous("reach", f"{name} is given {text}, {what}, and may do anything with it", held=True)]
    return []


def judge_inner_text(text: str, env: ShellEnv) -> list[Finding]:
    """Find in text of another language a command that destroys, wherever a shell's or that language's words end."""
    if env.is_guess or not is_static(text):
        return []
    env = replace(env, feed=PipedInput(), is_guess=True)
    pieces = from_both_ends(_CUTS.split(text))[:MAX_PIECES]
    found = (one for piece in pieces for one in env.command(tuple(_BLANKS.sub(" ", piece).split()[:20])))
    return [one for one in dict.fromkeys(found) if one.rule in _DESTROYS]


def _place(word: str, env: ShellEnv) -> str | None:
    """Say what a word leads to when that is no place for unknown programs."""
    if word[0] not in "~/.":
        return None
    home, files = env.context.home, env.context.files
    place = files.resolve(posixpath.join(env.cwd, word.replace("~", home, 1) if word.startswith("~/") else word))
    if _TREES.fullmatch(word):
        return "a directory of the system"
    if word == "~" or (home and is_below(home, (place,))):
        return "the home directory"
    if word.startswith("/dev/"):
        return None if _PLAIN_DEVICES.fullmatch(word) else "a device"
    leads_out = word.startswith(("/", "~/", "../")) or word == ".."
    has_own = leads_out and files.facts(posixpath.join(place, ".git")) is not None
    return "another repository" if has_own and not is_below(place, map(files.resolve, env.context.roots)) else None


SHELLS = word_set("sh bash zsh dash ksh mksh ash fish tcsh csh rbash yash nu")
_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|nodejs|deno|bun|rscript|julia|groovy|scala|tclsh|wish|guile|racket|elixir|iex|erl"
    r"|swift|ghci|runghc|ocaml|ts-node|tsx|jshell|kotlinc|clojure|bb|luajit|osascript|ipython|irb|r|octave|sqlite)"
    r"[0-9.]*w?"
)
_TASKS = frozenset({"artisan", "manage.py", "console", "rails", "rake", "django-admin", "setup.py"})
_CODE_OPTIONS = re.compile(
    r"-[a-zA-Z0-9]*[ceErpFR]|--(eval|exec|print|command|execute)|-?eval|(--eval=|-e|-c).*", re.DOTALL
)


@lru_cache(maxsize=1024)
def is_interpreter(name: str) -> bool:
    """Whether a program runs program text in its own language."""
    return _INTERPRETERS.fullmatch(name) is not None


def _shell(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a shell: its script is judged as a line of its own."""
    findings = [Finding(Risk.EXECUTE, "shell", "the shell runs a script")]
    options, operands = _told(words)
    firsts = [option for option in options if option.startswith(("--rcfile", "--init-file"))]
    findings += [dangerous("shell", f"{name} {option} runs another file first", held=True) for option in firsts]
    if any(map(_COMMAND.fullmatch, options)):
        alone = [dangerous("shell", f"{name} -c alone")]
        return findings + (_judge_script(operands[0], operands[1:], env) if operands else alone)
    script = script_of(words)
    if script is None:
        return findings + _judge_input(name, env)
    is_known = is_static(script) and not script.startswith(("/dev/", "/proc/"))
    return [*findings, *env.path(script, PathOp.READ)] if is_known else [*findings, _unknown(name)]


_COMMAND = re.compile(r"[-+]\w*c\w*|--command")


def _told(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell the options of a shell from what follows them."""
    options: list[str] = []
    pending = list(words)
    while pending and pending[0][:1] in ("-", "+"):
        options.append(pending.pop(0))
        if options[-1] in ("-", "--"):
            break
        if options[-1] in ("-o", "+o", "-O", "+O"):
            del pending[:1]
    return options, pending


def script_of(words: Sequence[str]) -> str | None:
    """Name the file that a shell runs with these words; None where it runs a text, or its input."""
    options, operands = _told(words)
    takes_text = any(map(_COMMAND.fullmatch, options)) or any(re.fullmatch(r"-\w*s\w*", word) for word in words)
    return None if takes_text or not operands else operands[0]


def _unknown(name: str) -> Finding:
    return dangerous("unknown-script", f"{name} runs text that is unknown until it runs", held=True)


def _judge_script(script: str, operands: Sequence[str], env: ShellEnv) -> list[Finding]:
    if not is_static(script):
        return [_unknown("the shell"), *scan_code(script, env)]
    values = {str(place): value for place, value in enumerate(operands)}
    every = SPLIT.join(operands[1:])
    variables = Variables(env.variables.home, {**env.variables.values, **values, "@": every, "*": every})
    return replace(env, variables=variables).script(script, feed=env.feed)


def _judge_input(name: str, env: ShellEnv) -> list[Finding]:
    if env.feed.is_pipe:
        return [dangerous("piped-script", f"{name} runs what comes through the pipe", held=True)]
    text = env.feed.text or ""
    return env.script(text) if is_static(text) else [_unknown(name)]


def judge_interpreter(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge an interpreter: always a question, dangerous when the program text shows danger or comes from a pipe."""
    findings = [Finding(Risk.EXECUTE, "interpreter", f"{name} runs a program")]
    if name.startswith(("python", "pypy")) and "-m" in words:
        module = tuple(words[words.index("-m") + 1 :])
        return findings + (env.command(module) if module else [])
    told = [word for word in words[1:] if DESTRUCTIVE_VERBS.fullmatch(word) or word in ("upload", "register")]
    if told and not _TASKS.isdisjoint(map(posixpath.basename, words[:2])):
        findings.append(dangerous("dangerous-form", f"{told[0]} destroys or publishes something"))
    findings.extend(judge_reach(name, words, env))
    has_program = False
    for place, word in enumerate(words):
        is_code = _CODE_OPTIONS.fullmatch(word) is not None
        findings.extend(scan_code(" ".join(words[place : place + 2]), env) if is_code else [])
        has_program |= is_code or not word.startswith("-")
    if has_program:
        return findings
    if env.feed.is_pipe:
        findings.append(dangerous("piped-script", f"{name} runs what comes through the pipe", held=True))
    return findings + (scan_code(env.feed.text, env) if env.feed.text is not None else [])


def scan_code(text: str, env: ShellEnv) -> list[Finding]:
    """Look through program text of any language for words that mean harm, and for places and protected names."""
    findings = [*judge_inner_text(text, env), *_contained(CODE, text, "the program text")]
    if UNKNOWN in text:
        findings.append(_unknown("the program"))
    tokens = dict.fromkeys(filter(None, _TOKENS.split(text)))
    # A lone slash or a folder of the system says nothing.
    places = [token for token in tokens if token[0] in "/~" and not _TREES.fullmatch(token)]
    findings.extend(judge_reach("the program text", places, env))
    return [*findings, *(found for token in tokens for found in env.mentions(token))]


def _contained(harm: re.Pattern[str], text: str, where: str, rule: str = "opaque-code") -> list[Finding]:
    match = harm.search(text)
    text = "" if match is None else f"{where} contains {match.group().strip()!r}"
    return [dangerous(rule, text, held=rule == "opaque-code")] if text else []


_FILE_DATABASES = frozenset({"sqlite3", "sqlite", "litecli"})
"""Clients of databases that are files: they reach no network."""


_PORTS = MappingProxyType(
    {
        **dict.fromkeys(("psql", "pgcli"), 5432),
        **dict.fromkeys(("mysql", "mariadb", "mycli"), 3306),
        **dict.fromkeys(("mongo", "mongosh"), 27017),
        "redis-cli": 6379,
    }
)
"""Where databases listen unless told otherwise."""

_HERE = re.compile(r"(?:(?:-h|--host=)|\w+://(?:[^@/]*@)?)?(?:localhost|127\.0\.0\.1)(?::(\d+))?(?:/.*)?")
_HOST, _PORT = word_set("-h --host"), word_set("-p -P --port")


_BY_SOCKET = 3306
"""Clients of MySQL take `localhost` for the socket of the machine's own server."""

_HERE_UNLESS_NAMED = frozenset({"mongo", "mongosh", "redis-cli"})
"""Clients that mean this machine where nothing else is named; others have a socket or a setting for that."""

_ELSEWHERE = re.compile(r"-[hus]|--(host|uri|tls)|.*(://|\.)")


def _is_own_database(name: str, words: Sequence[str], env: ShellEnv) -> bool:
    """Whether a client names a database on this machine that a command of this session serves."""
    named = [found for word in words if (found := _HERE.fullmatch(word))]
    asked = [after for word, after in pairwise(words) if word in _HOST]
    if not (named or (name in _HERE_UNLESS_NAMED and not any(map(_ELSEWHERE.match, words)))):
        return False
    if _PORTS.get(name) == _BY_SOCKET and any("localhost" in found[0] for found in named):
        return False
    if not (env.context.confined and name in _PORTS) or any(not _HERE.fullmatch(one) for one in asked):
        return False
    ports = [found[1] for found in named if found[1]]
    ports += [after for word, after in pairwise((*words, "")) if word in _PORT and after.isdigit()]
    ports += [word.removeprefix("--port=") for word in words if re.fullmatch(r"--port=\d+", word)]
    return not any(env.context.machine_serves(int(port)) for port in ports or [_PORTS[name]])


def _database(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a database client: a question, and dangerous when a statement changes something."""
    is_near = name in _FILE_DATABASES or _is_own_database(name, words, env)
    risk = Risk.EXECUTE if is_near else Risk.REMOTE
    findings = [Finding(risk, "database", f"{name} sends statements to a database, which can change it")]
    for text in [*words, env.feed.text or "", *(" ".join(command) for command in env.feed.upstream)]:
        findings.extend(env.mentions(text))
        findings.extend(_contained(SQL, text, "the statement", "database"))
    return findings


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
_ADDRESSES = re.compile(rf"[\d,$!{UNKNOWN}]+[a-zA-Z=]?")
"""Lines of a file and what sed does with them, which names no file, whatever their numbers are."""

_FROM_FILE = {"sed": r"-\w*f-?|--file", "awk": r"-\w*[fE]|--file|--exec|-f-", "jq": r"-\w*f|-f-|--from-file"}
"""By language: options that name a file with the program, or take it from the input."""


def _filter(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge sed, awk, jq and their like."""
    language = name[-3:] if name.endswith(("sed", "awk")) else "jq"
    pending = list(dropwhile(re.compile(_HARMLESS[language]).fullmatch, words))
    in_place = language == "sed" and pending[:1] == ["-i"]
    program, *files = pending[in_place:] or [""]
    is_plain = name != "yq" and is_static(program) and _PLAIN[language].fullmatch(program) is not None
    if not is_plain or any(file.startswith("-") or "=" in file or not is_static(file[:1]) for file in files):
        return _search(name, words, env, language)
    ops = (PathOp.READ, PathOp.WRITE) if in_place else (PathOp.READ,)
    only_edits = Finding(Risk.READ, "reader", f"{name} runs nothing, and touches no other files")
    return [only_edits, *(found for op in ops for file in files for found in env.path(file, op))]


def _search(name: str, words: Sequence[str], env: ShellEnv, language: str) -> list[Finding]:
    """Look for danger in what is not followed: protected names, written files, and words that run something."""
    findings = [unclear("opaque-code", f"{name} runs a program in its own language, which may do more than print")]
    fed = env.feed.text or ""
    program = next((word for word in words if not word.startswith("-")), "")
    changes = language != "awk" and any(re.match(r"-\w*[iI]|--in-place", word) for word in words)
    op = PathOp.WRITE if changes else PathOp.READ
    for text in (*words, fed):
        if language == "sed" and text == program and _ADDRESSES.fullmatch(text):
            continue
        code = text if language == "awk" else re.sub(r"^(--[\w-]+=|-\w)", "", text)
        findings.extend(_contained(_SECRETS if language == "jq" else _MAY_RUN, code, f"the {name} program"))
        paths = [one for target in _TARGET.findall(code) for one in env.path(target.strip(), PathOp.WRITE)]
        paths.extend(env.path(text, op) if text and not text.startswith("-") else [])
        findings.extend(one for one in paths if one.path or one.risk is Risk.CRITICAL)
        tokens = (text, *_TOKENS.split(text)) if name != "jq" or text != program else ()
        named = [one for token in tokens if not _NO_NAME.search(token) for one in env.mentions(token)]
        only_read = language == "jq" or (text != program and "=" not in text and op is PathOp.READ)
        findings.extend(one for one in named if one.rule == "secret-read" or not only_read)
    if any(re.fullmatch(_FROM_FILE[language], word) for word in words) and (env.feed.is_pipe or UNKNOWN in fed):
        findings.append(dangerous("piped-script", f"{name} may run its input", held=True))
    return findings


FILTERS = word_set("sed gsed awk gawk mawk nawk jq yq gojq")
LANGUAGES: dict[str, ProgramJudge] = {
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(SQL_CLIENTS, _database),
    **dict.fromkeys(FILTERS, _filter),
}
"""Judges by program name."""
