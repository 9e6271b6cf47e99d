"""What the shell itself does: the variables, expansions and redirections around a command, and its builtins."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import assert_never

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.shell.dangers import (
    PRINTS_SECRETS,
    VARIABLES_DANGEROUS,
    VARIABLES_HARMLESS,
    VARIABLES_SAFE_TO_SHOW,
    VARIABLES_SECRET,
)
from treadle.policy.shell.expand import SPELLED_OUT, expand_text, expand_word
from treadle.policy.shell.handed_lists import fed_by
from treadle.policy.shell.shell_env import PipedInput, ProgramJudge, ShellEnv
from treadle.policy.shell.syntax import (
    Arithmetic,
    Literal,
    Parameter,
    Redirect,
    Segment,
    Simple,
    Substitution,
)
from treadle.protocol.tools import Risk

_PLAIN_VALUE = re.compile(r"[\w.@+:-]*|[A-Z]\w+(/[A-Z][\w-]+){1,2}")
"""A word, or the name of a time zone; a path would name a file to read."""

_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_READ_BY_SHELLS = word_set(
    "histchars auto_resume path fpath cdpath manpath mailpath module_path fignore watch prompt argv status"
)
"""Names in small letters that mean something after all, most of them to zsh."""

_FOLDER = r"(\./)?\w[\w-]*(/\w[\w-]*)*/?"
_VERB = r"(pick|reword|edit|squash|fixup|drop|[presfd])"
_STEP = rf"(\d+|\$|\d+,(\d+|\$))?(d|s/\^?(pick|p)(?P<commit>( [0-9a-f]+)?)/{_VERB}(?P=commit)/g?)"
_STEPS = rf"(?P<quote>['\"]?)({_STEP}(; ?(?=[\d$ds])|(?=['\"]?$)))+(?P=quote)"
"""What `sed` does to the steps of a rebase; none picks another commit than before."""

_TELLS_LITTLE = re.compile(
    rf".*PAGER=(cat)?|(PYTHONPATH|NODE_PATH)={_FOLDER}(:{_FOLDER})*"
    rf"|((GIT_)?(SEQUENCE_)?EDITOR|VISUAL)=(true|:|cat|sed -i (-e )?{_STEPS})?"
    r"|GIT_((AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|REFLOG_ACTION)=.*|GIT_MERGE_AUTOEDIT=(no|yes)"
    r"|GIT_(TERMINAL_PROMPT|OPTIONAL_LOCKS|LFS_SKIP_SMUDGE|TRACE(_[A-Z_]+)?)=[01]",
    re.DOTALL,
)
"""No pager, no editor or one that only changes how a rebase picks, what git but notes or prints, or where code is: in
named folders below the one that the line runs in, the code of the project."""


def judge_assignment(name: str, value: str, *, alone: bool = False) -> list[Finding]:
    """Judge one variable that is set, for one command or (`alone`) for the rest of the line.

    A name in small letters is by custom the line's own: no program reads it, but for those that are listed.
    """
    is_dangerous = VARIABLES_DANGEROUS.fullmatch(name) is not None
    is_own = alone and not is_dangerous and name not in _READ_BY_SHELLS and _OWN_NAME.fullmatch(name)
    if is_own or (VARIABLES_HARMLESS.fullmatch(name) and _PLAIN_VALUE.fullmatch(value)):
        return [Finding(Risk.READ, "variable", f"{name} is a variable of this line, or harmless")]
    if _TELLS_LITTLE.fullmatch(f"{name}={value}"):
        return [unclear("variable", f"{name}={shown(value)} says who pages, edits or commits, or what code is loaded")]
    if is_dangerous:
        pager = "; leave it out, since no pager is started here" if name.endswith("PAGER") else ""
        return [dangerous("variable", f"{name} changes what later programs run or read{pager}", held=True)]
    hint = "" if name.islower() else "; a lower-case name would be the line's own"
    return [unclear("variable", f"sets the variable {name}, which programs may read{hint}")]


_ONLY_SHOWS = word_set("- :- # ## % %% / // /# /% ^ ^^ , ,,") | {""}


def judge_segments(segments: Iterable[Segment], env: ShellEnv) -> list[Finding]:
    """Judge what the expansions of a word run and show."""
    findings: list[Finding] = []
    for segment in segments:
        match segment:
            case Literal():
                continue
            case Parameter():
                findings.extend(_parameter(segment, env))
            case Substitution(direction=direction):
                fed = PipedInput(upstream=((UNKNOWN,),) if direction == ">" else ())
                env.judge_tree(segment.script, replace(env, feed=fed))
                if direction:
                    findings.append(unclear("syntax", "a process substitution"))
                commands = [one for pipeline in segment.script.pipelines for one in pipeline.commands]
                if any(isinstance(one, Simple) and SPELLED_OUT.search(one.text) for one in commands):
                    findings.append(
                        dangerous("hidden-text", "letters are written as numbers, which hides them", held=True)
                    )
            case Arithmetic():
                findings.extend(judge_segments(segment.inner, env))
                text = f"{segment.text.strip()!r}: arithmetic evaluates values and may set variables"
                findings.append(unclear("evaluated-text", text))
            case _:
                assert_never(segment)
    return findings


def _parameter(parameter: Parameter, env: ShellEnv) -> list[Finding]:
    findings = judge_segments(parameter.operand, env)
    name = parameter.name
    cuts = parameter.operator == ":" and re.fullmatch(r"[\d\s:-]*", expand_text(parameter.operand, env.variables))
    if parameter.operator not in _ONLY_SHOWS and not cuts:
        text = f"${{{name}{parameter.operator}…}} may evaluate a value, and does more than show it"
        findings.append(unclear("evaluated-text", text))
    if parameter.operator in (":=", "="):
        findings.extend(judge_assignment(name, UNKNOWN))
    is_secret = VARIABLES_SECRET.fullmatch(name) is not None
    if is_secret:
        findings.append(dangerous("secret-variable", f"uses the variable {name}, which looks like a secret", held=True))
    if is_secret or (name not in VARIABLES_SAFE_TO_SHOW and name not in env.variables.values):
        findings.append(unclear("unknown-variable", f"the value of {name} is unknown"))
    return findings


def judge_redirects(redirects: Iterable[Redirect], env: ShellEnv) -> tuple[list[Finding], PipedInput | None]:
    """Judge redirections; gives the new input, if any."""
    findings: list[Finding] = []
    feed: PipedInput | None = None
    for redirect in redirects:
        env.effort.spend()
        segments = redirect.target.segments
        findings.extend(judge_segments(segments, env))
        if redirect.operator in ("<<", "<<<"):
            feed = PipedInput(text=expand_text(segments, env.variables, env.cwd))
        else:
            findings.extend(_redirect(redirect, env))
        if redirect.operator == "<":
            feeds = (
                fed_by(one.script, env) for one in segments if isinstance(one, Substitution) and one.direction == "<"
            )
            feed = next(feeds, PipedInput())
    return findings, feed


_TRUNCATES = frozenset({">", ">|", "&>", ">&"})


def _redirect(redirect: Redirect, env: ShellEnv) -> list[Finding]:
    targets = expand_word(redirect.target, env.variables, env.cwd)
    findings: list[Finding] = []
    for target in targets:
        if target == "!":
            findings.append(dangerous("redirect", "zsh writes to the word that follows", held=True))
        if target.startswith(("/dev/tcp", "/dev/udp")):
            findings.append(dangerous("network-redirect", f"{target} is a connection to the network"))
        elif redirect.operator in (">&", "<&") and (target.rstrip("-").isdigit() or target == "-"):
            continue
        else:
            op = PathOp.READ if redirect.operator == "<" else PathOp.WRITE
            findings.extend(env.path(target, op))
            findings.extend(env.overwrites(target) if redirect.operator in _TRUNCATES else [])
    if len(targets) != 1:
        findings.append(unclear("redirect", f"the file {redirect.target.text} is unknown until it runs"))
    return findings


_FILE_TESTS = word_set("-e -f -d -r -w -x -s -L -h -nt -ot -ef")
"""Operators of tests that look at the file whose name follows."""

_CALCULATING_TESTS = word_set("-eq -ne -lt -le -gt -ge")
_OTHER_TESTS = _FILE_TESTS | _CALCULATING_TESTS | word_set("= == != < > -z -n")
_ASSIGNING = frozenset({"read", "mapfile", "readarray", "getopts"})
_EVALUATED = re.compile(r"\$\(|`|\$\{")
_CALCULATES = re.compile(r"-\w*[in]")
_SUBSCRIPT = re.compile(r"\[[^\]\n]*(\$\(|`)")


def judge_evaluated(text: str, env: ShellEnv) -> list[Finding]:
    """Judge text that the shell may evaluate a second time, as it does with subscripts and arithmetic."""
    if _EVALUATED.search(text):
        return [
            dangerous("evaluated-text", "text in quotes is evaluated a second time", held=True),
            *env.script(f": {text}"),
        ]
    if "[" in text or not is_static(text):
        return [unclear("evaluated-text", "the text may be evaluated a second time")]
    return []


def judge_subscripts(texts: Iterable[str], env: ShellEnv) -> list[Finding]:
    """Judge values that a calculation would evaluate wherever the line uses them as a number."""
    return [found for text in texts if _SUBSCRIPT.search(text) for found in judge_evaluated(text, env)]


def _eval(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    given = [word for word in words if word != "--"]
    # An alias is a command behind its name.
    given = [word.replace("=", ";", 1) for word in given] if name == "alias" else given
    text = " ".join(given[:1] if name == "trap" else given)
    if not is_static(text):
        return [dangerous("unknown-script", f"{name} runs text that is unknown until it runs", held=True)]
    return [unclear("shell", f"{name} runs text"), *env.script(text)]


def _source(name: str, words: Sequence[str], _env: ShellEnv) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "shell", f"{name} runs a file in this shell")]
    if any(not is_static(word) or word.startswith(("/dev/", "/proc/")) for word in words[:1]):
        findings.append(dangerous("unknown-script", f"{name} runs text that is unknown until it runs", held=True))
    return findings


def _state(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge what sets or shows variables, or changes how the shell works."""
    only_exports = name == "export" and bool(words) and all("=" in word for word in words)
    findings = [] if only_exports else [unclear("shell-state", f"{name} changes the state of the shell")]
    if name in _ASSIGNING:
        fed = (word for command in env.feed.upstream for word in command[1:])
        findings.extend(judge_subscripts((env.feed.text or "", *fed), env))
    for word in words:
        variable, is_set, value = word.partition("=")
        # An integer is calculated, and a name of a name is looked up: now, or where it is used.
        findings.extend(judge_evaluated(word, env))
        sets = name not in PRINTS_SECRETS | {"unset"} or "-n" in words
        if is_set or (sets and not word.startswith("-")):
            findings.extend(judge_assignment((value if "-n" in words else "") or variable.rstrip("+"), value))
        if not is_set and name in {*PRINTS_SECRETS, "unset"} and VARIABLES_SECRET.fullmatch(word):
            findings.append(dangerous("prints-environment", f"{name} shows the variable {word}", held=True))
        if is_glob(value) and any(_CALCULATES.match(option) for option in words):
            findings.append(dangerous("evaluated-text", "a value in brackets is evaluated a second time", held=True))
    return findings


def _change_directory(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    operands = [word for word in words if word not in ("--", "-P", "-L")]
    if name != "cd" or len(operands) > 1 or any(word.startswith("-") for word in operands):
        return [unclear("unknown-directory", "the directory is unknown until it runs")]
    return env.path(operands[0] if operands else env.context.home or "/", PathOp.LIST)


def _flow(name: str, words: Sequence[str], _env: ShellEnv) -> list[Finding]:
    if all(re.fullmatch(r"\d{1,2}(\.\d+)?s?" if name == "sleep" else r"\d{1,3}", word) for word in words):
        return [Finding(Risk.READ, "reader", f"{name} controls the flow of the line")]
    return [unclear("shell-state", f"{name} with something unknown, or for a long time")]


def judge_test(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge `[`, `test`, and `[[`, whose words are no program's."""
    # An operator that is not known may be -v, which evaluates a subscript, and -eq does in some shells.
    parts = [word for word in words[: -1 if name == "[" else None] if word != "!"]
    is_plain = name == "[[" or all(map(is_static, words)) or (len(parts) in (2, 3) and parts[-2] in _OTHER_TESTS)
    calculates = name == "[[" and not _CALCULATING_TESTS.isdisjoint(words)
    risky = [word for word in parts if "-v" in words or _EVALUATED.search(word) or ("[" in word and name != "[[")]
    findings = [found for word in risky for found in judge_evaluated(word, env)]
    if risky or calculates or not is_plain:
        findings.append(unclear("evaluated-text", "the test may evaluate one of its words a second time"))
    named = (word for operator, word in pairwise(words) if operator in _FILE_TESTS)
    files = [word for word in named if name == "[[" or is_static(word)]
    only_reads = Finding(Risk.READ, "reader", "a test looks at files only")
    return [only_reads, *findings, *(found for file in files for found in env.path(file, PathOp.LIST))]


BUILTINS: dict[str, ProgramJudge] = {
    **dict.fromkeys(("eval", "trap", "alias"), _eval),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(word_set("unset let getopts read mapfile readarray shift wait bind set"), _state),
    **dict.fromkeys(word_set("declare typeset local readonly export"), _state),
    **dict.fromkeys(("cd", "pushd", "popd", "chdir"), _change_directory),
    **dict.fromkeys(("exit", "return", "break", "continue", "sleep"), _flow),
    **dict.fromkeys(("test", "["), judge_test),
}
"""Judges by command name."""
