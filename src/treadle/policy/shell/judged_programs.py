"""One simple command: which judge it belongs to."""

import posixpath
import re
from collections.abc import Sequence

from treadle.policy.findings import USES_NETWORK, WITHOUT_SANDBOX, Finding, dangerous, is_plain, unclear, unfollowed
from treadle.policy.marks import is_static, shown, word_set
from treadle.policy.shell.builtins import BUILTINS
from treadle.policy.shell.danger_forms import HELD_FORMS, dangerous_form
from treadle.policy.shell.dangers import VARIABLES_SECRET, always
from treadle.policy.shell.file_programs import FILE_PROGRAMS
from treadle.policy.shell.git import judge_git
from treadle.policy.shell.handed_lists import judge_whole
from treadle.policy.shell.interpreters import (
    FILTERS,
    LANGUAGES,
    SHELLS,
    is_interpreter,
    judge_inner_text,
    judge_interpreter,
    judge_outputs,
    judge_reach,
    script_of,
)
from treadle.policy.shell.network_programs import NETWORK, PUBLISHES, brings_text, publishes
from treadle.policy.shell.readers import SHOWS_VERSION
from treadle.policy.shell.shell_env import EffortError, ProgramJudge, ShellEnv
from treadle.policy.shell.wrappers import WRAPPERS, judge_find, suffixes
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

MAX_NESTING = 12
MAX_WORDS = 1000
"""Words of a command that are judged; a line with a longer one is only searched."""

WORDS_A_STEP = 20

_MESSAGE_PROGRAMS = frozenset({"gh", "glab", "kubectl"})
_ENDS_MANY = re.compile(r"(^(-?1|0)| (-\d+|0|1))( |$)|[\0\1\2\4]")
_JUDGES_ITS_OWN = frozenset({"git", "find", "gfind"})
_READS_ITS_WORDS = frozenset({*NETWORK, *FILTERS, *BUILTINS}) - {"source", "."}
"""Programs of whose words it is known which ones name files."""

_NOT_KNOWN = frozenset({"unknown-option", "unknown-operand"})
_SENDS_ITS_INPUT = frozenset({"ssh", "sftp", "mosh"})
_USELESS_CONFINED = {
    **dict.fromkeys(word_set("docker docker-compose podman nerdctl buildah"), "works with containers of this machine"),
    **dict.fromkeys(word_set("sudo su doas pkexec"), "needs what no sandbox gives"),
    **dict.fromkeys(_SENDS_ITS_INPUT, "acts on another machine with your keys"),
}
"""Programs that always need what nobody can give them while they run, and why: a yes lets them run without a sandbox.

One that is missing here costs a second run.
"""


_TELLS_ITS_VERSION = frozenset({("-V",), ("--version",), ("version",), ("--help",), ("compose", "version")})


def judge_command(argv: tuple[str, ...], env: ShellEnv) -> list[Finding]:
    """Judge one command with its words already expanded."""
    env.effort.spend(1 + len(argv) // WORDS_A_STEP)
    if env.depth > MAX_NESTING:
        return [unfollowed("budget", "the line holds too deeply nested commands to follow")]
    if not argv:
        return []
    if len(argv) > MAX_WORDS:
        raise EffortError
    env.trace.commands.append(argv)
    if not is_static(argv[0]):
        return [
            dangerous("unknown-program", "the program is unknown until it runs", held=True),
            *suffixes(argv[1:], env),
        ]
    if brings_text(argv, env.feed.text or ""):
        env.brings_text(argv[0])
    name, findings = _program(argv[0])
    words = argv[1:]
    if name.startswith("git-"):
        name, words = "git", (name[4:], *words)
    found = [*findings, *_by_name(name, words, env)]
    if not (env.is_search or name in _JUDGES_ITS_OWN or is_plain(found)):
        # Whatever does more than read is looked through for what is protected, whatever its words mean to it.
        is_read = name in FILE_PROGRAMS and all(one.rule not in _NOT_KNOWN for one in found)
        if not (is_read or name in _READS_ITS_WORDS):
            script = script_of(words) if name in SHELLS else None
            found.extend(one for word in words if word != script for one in env.mentions(word))
        found.extend([*judge_outputs(words, env), *judge_whole(name, words, env), *_reaches_out(name, words, env)])
    folded = name.casefold()
    if folded != name:
        # A file system that ignores case runs the same program: look for danger, allow nothing.
        found.extend(finding for finding in _by_name(folded, words, env) if finding.risk is Risk.CRITICAL)
    return found


def _reaches_out(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Find that a program publishes, or works only without a sandbox."""
    found: list[Finding] = []
    if publishes(name, words):
        text = f"{name} publishes or deploys here, which others see immediately"
        found.append(Finding(Risk.REMOTE, PUBLISHES, text))
    if name in _SENDS_ITS_INPUT and words != ("-V",):
        found.append(Finding(Risk.REMOTE, PUBLISHES, f"{name} acts on another machine in your name"))
    confined = env.context.confined and env.context.mode is not Mode.PLAN
    if confined and name in _USELESS_CONFINED and words not in _TELLS_ITS_VERSION:
        text = f"{name} {_USELESS_CONFINED[name]}, so it runs without the sandbox"
        found.append(Finding(Risk.EXECUTE, WITHOUT_SANDBOX, text, always_asks=True))
    return found


def _program(word: str) -> tuple[str, list[Finding]]:
    if "/" not in word:
        return word, []
    name = posixpath.basename(posixpath.normpath(word))
    if word.startswith("/proc/"):
        return name, [dangerous("unknown-program", "the program is named through /proc", held=True)]
    return name or word, [Finding(Risk.EXECUTE, "own-program", f"{word} is named by its place")]


def _by_name(name: str, words: tuple[str, ...], env: ShellEnv) -> list[Finding]:
    if words == ("--version",) and name in SHOWS_VERSION and env.is_trusted:
        return [Finding(Risk.READ, "version", f"{name} prints its version")]
    findings: list[Finding] = []
    why = always(name, words)
    if why is not None:
        rule = USES_NETWORK if why.startswith("@") else "program"
        findings.append(dangerous(rule, f"{name} {why.lstrip('~@')}", held=why[0] in "~@"))
    old_style = name in ("tar", "bsdtar", "gtar") and words[:1] != () and not words[0].startswith("-")
    form = dangerous_form(name, (f"-{words[0]}", *words) if old_style else words)
    if form is not None:
        told = f"{name} {shown(form)}".strip()
        text = f"{told} publishes, destroys, leaks or takes control"
        findings.append(dangerous("dangerous-form", text, held=name in HELD_FORMS))
    judge = _JUDGES.get(name) or (judge_interpreter if is_interpreter(name) else _judge_unknown)
    return findings + judge(name, words, env)


def _printenv(_name: str, words: Sequence[str], _env: ShellEnv) -> list[Finding]:
    prints = dangerous if any(map(VARIABLES_SECRET.fullmatch, words)) else unclear
    return [prints("prints-environment", "prints variables, perhaps secrets")]


def _judge_unknown(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    text = f"{name.strip() or 'a program without a name'} is not known to only read"
    findings = [unclear("unknown-program", text)]
    if name in _SENDS_ITS_INPUT and (env.feed.is_pipe or env.feed.text is not None):
        findings.append(dangerous("upload", f"{name} sends what it reads to another machine"))
    if name in ("make", "gmake", "bmake") and env.feed.is_pipe and not {"-f-", "-f", "--file=-"}.isdisjoint(words):
        findings.append(dangerous("piped-script", f"{name} runs what comes through the pipe", held=True))
    if name in _MESSAGE_PROGRAMS:
        return findings
    findings.extend(suffixes(words, env))
    if name not in _SENDS_ITS_INPUT and not env.is_search:
        # What is installed below another folder does not go where it is to stand later.
        staged = any(word.startswith("DESTDIR=") for word in words)
        given = [word for word in words if not (staged and word.casefold().startswith("prefix="))]
        findings.extend(judge_reach(name, given, env))
        for text in (*words, env.feed.text or ""):
            findings.extend(judge_inner_text(text, env) if " " in text else [])
    if name == "kill" and _ENDS_MANY.search(" ".join(words)):
        findings.append(dangerous("kill", "ends processes that may belong to others", held=True))
    return findings


_JUDGES: dict[str, ProgramJudge] = {
    **FILE_PROGRAMS,
    **LANGUAGES,
    **WRAPPERS,
    **NETWORK,
    **BUILTINS,
    **dict.fromkeys(("find", "gfind"), judge_find),
    **dict.fromkeys(("git", "hub"), judge_git),
    "printenv": _printenv,
}
