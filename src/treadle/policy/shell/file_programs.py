"""Programs that read or change files: options first, then each operand as a path."""

import posixpath
import re
from collections.abc import Sequence

from treadle.policy.decision_context import FileKind
from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, as_glob, is_glob, is_static, shown, word_set
from treadle.policy.name_patterns import picks_secret
from treadle.policy.shell.builtins import judge_assignment, judge_evaluated
from treadle.policy.shell.dangers import PRINTS_SECRETS
from treadle.policy.shell.expand import in_braces
from treadle.policy.shell.readers import OBEY_NOTHING, read_arguments, readers
from treadle.policy.shell.shell_env import ProgramJudge, ShellEnv
from treadle.protocol.tools import Risk

_SET = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
_TELLS_OF_SECRETS = re.compile(r"token|secret|pass|key|cred|auth|api", re.IGNORECASE)
_PLAIN_LETTERS = re.compile(r"[afjlruvxwS]+")
_LETTERS = re.compile(r"[aefjlruvxwS]+")
_NUMBER_FORMAT = re.compile(r"%[-+ #0-9.*]*[diouxXeEfFgGaA]")


def _read(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a program that has a table: within it the program only reads."""
    table = readers()[name]
    if table.operands == ("RAW",):
        return [Finding(Risk.READ, "reader", f"{name} prints its arguments"), *_raw(name, words, env)]
    arguments = read_arguments(table, words)
    operands, kinds = arguments.operands, table.operands
    findings = [Finding(Risk.READ, "reader", f"{name} only reads")]
    strange = [word for word in arguments.strange if not (is_glob(word) and name in OBEY_NOTHING)]
    if kinds[:1] == ("PATTERN",):
        upstream = env.feed.upstream
        if upstream and upstream[0][0] in PRINTS_SECRETS and _TELLS_OF_SECRETS.search(" ".join(words)):
            findings.append(
                dangerous("prints-environment", f"{name} picks secret variables out of the environment", held=True)
            )
        # The first operand is the pattern, unless an option gave it.
        pattern = () if arguments.has("-e", "-f", "--regexp", "--file", "--files", "--type-list") else operands[:1]
        operands, kinds = operands[len(pattern) :], kinds[1:]
        strange = [word for word in strange if not ("--" in words and word in pattern)]
        if not operands and not env.feed.is_pipe and (name == "rg" or arguments.has("-r", "--recursive")):
            operands = (".",)
    if name == "ps":
        # Letters without a dash are options, too; where it is only guessed that this is ps, other words are none.
        letters = [word for word in operands if not env.is_search or _LETTERS.fullmatch(word)]
        if any("e" in word for word in letters) or "env" in "".join(arguments.values("-o")):
            return [dangerous("prints-environment", "prints the environment of other processes", held=True)]
        operands = tuple(word for word in operands if not _PLAIN_LETTERS.fullmatch(word))
    findings.extend(_strange(name, word) for word in strange)
    for option in arguments.given:
        findings.extend(_judge_picked(option.value) if option.kind == "%" and option.value is not None else [])
    last = kinds[-1] if kinds and kinds[-1].endswith("*") else ""
    for place, operand in enumerate(operands):
        kind = (kinds[place] if place < len(kinds) else last).rstrip("*")
        findings.extend(_judge_operand(name, kind, operand, env))
    return findings


def _raw(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    shows = [found for word in words if is_glob(word) for found in env.path(word, PathOp.LIST)]
    if name != "printf" or not words:
        return shows
    if _NUMBER_FORMAT.search(words[0]):
        # Other shells than bash calculate what they print as a number, subscripts included.
        shows.extend(found for word in words[1:] for found in judge_evaluated(word, env))
    if words[0].startswith("-") and words[0] != "--":
        shows.append(unclear("evaluated-text", "printf -v sets a variable and may evaluate a subscript"))
        shows.extend(judge_assignment("".join(words[1:2]), UNKNOWN))
        shows.extend(found for word in words[:2] for found in judge_evaluated(word, env))
    elif len(words) > 1 and not is_static(words[0][:1]):
        shows.append(unclear("evaluated-text", "the format is unknown and could be -v, which sets a variable"))
    return shows


def _strange(name: str, word: str) -> Finding:
    """Say why a word asks: an option that is not known, or something that may turn out to be one."""
    hint = f"write {'./' + shown(word)!r}" if is_glob(word) else "spell it out, or put -- before it"
    why = "is not an option known to be harmless" if is_static(word) else f"could be an unknown option; {hint}"
    return unclear("unknown-option", f"{name}: {shown(word)!r} {why}")


def _judge_picked(text: str) -> list[Finding]:
    """Judge a pattern that says which files are read."""
    if text.startswith("!"):
        return []
    for piece in in_braces(_SET.sub("*", text.replace("\\", ""))):
        name = picks_secret(as_glob(piece))
        if name is not None:
            return [dangerous("secret-read", f"reads {name}, which is protected", held=True)]
    if UNKNOWN in text:
        return [unclear("unknown-pattern", "the pattern that picks the files is unknown until it runs")]
    return []


def _judge_operand(name: str, kind: str, operand: str, env: ShellEnv) -> list[Finding]:
    match kind:
        case "TEXT":
            return env.path(operand, PathOp.LIST) if is_glob(operand) else []
        case "LIST" | "READ":
            return env.path(operand, PathOp(kind.lower()))
        case "SETS":
            return (
                []
                if operand.startswith("+")
                else [dangerous("dangerous-operand", f"{name} changes the system", held=True)]
            )
        case _:
            text = f"{name}: {shown(operand)!r} is one operand more than is known to be harmless"
            return [unclear("unknown-operand", text)]


REGENERABLE = word_set("""
    node_modules dist build out target coverage htmlcov __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox
    .next .nuxt .turbo .parcel-cache .cache .gradle .eggs .coverage .hypothesis bower_components tmp temp .tmp
    cmake-build-debug cmake-build-release .import_linter_cache .svelte-kit .angular .vite .output storybook-static
""")
"""Directories that tools make again; deleting others recursively may destroy work."""

_PLAIN = re.compile(
    r"-[acdfhilnpqrsuvkLPRHT]+|--(parents|verbose|force|recursive|archive|no-clobber|append|no-create|symbolic|relative)"
)
"""Options that leave it at the files that are named."""

_NAMED = word_set("touch mkdir rmdir tee truncate unlink mkfifo cp mv ln link install gzip gunzip xz")
"""Programs that change the files they are given and no others."""

_FURTHER = word_set("""
    mktemp split csplit unix2dos dos2unix ex ed bzip2 bunzip2 zstd patch unzip chmod chown chgrp rsync scp
""")
"""The same, and others besides: what an archive, a patch or their input names, or permissions."""

_RECURSIVE = re.compile(r"-\w*[aRr].*|--(r|archive).*")
_REMOVERS = frozenset({"rm", "rimraf", "del-cli"})
_EMPTIES = frozenset({"tee", "truncate"})
_ADDS = re.compile(r"-\w*a\w*|--append|(--size=|-s)?\+.*")
_COPIES = frozenset({"cp", "mv", "install", "ln", "link", "rsync", "scp"})
_REMOTE = re.compile(r"[^/]*@?[^/]+:.*|[a-z]+://.*")
_SCRATCH = re.compile(r"(/private)?/tmp/.")


_OPENS = re.compile(r"(-\w*m|--mode=)?(0*([2-7]\d{3}|\d{2,3}[2367])|(.*,)?([ug]*[oa]\w*[+=]\w*w|\w*[+=]\w*s|=\w*w).*)")
"""A mode that lets everybody write, or a file run with its owner's rights."""


def _write(name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a program that changes files."""
    # Where `--` stands, what looks like an option may be a name.
    operands = [word for word in words if not word.startswith("-") or word == "-" or "--" in words]
    is_recursive = any(map(_RECURSIVE.fullmatch, words))
    strange = [word for word in words if word[:1] == "-" and word not in ("-", "--") and not _PLAIN.fullmatch(word)]
    strange += [word for word in words if not is_static(word[:1])]
    findings = [_strange(name, word) for word in strange]
    if name in _FURTHER or (is_recursive and name not in {*_REMOVERS, "touch", "tee"}):
        findings.append(unclear("unknown-writes", f"{name} changes more than the line says"))
    if name in _REMOVERS:
        return [*findings, *_remove(name, operands, env, is_recursive=is_recursive or name != "rm")]
    findings.append(Finding(Risk.WRITE, "writer", f"{name} changes files"))
    for operand in operands if name not in _COPIES else ():
        found = env.path(operand, PathOp.WRITE)
        is_scratch = name == "mkdir" and all(_SCRATCH.match(one.path) for one in found)
        findings.extend([unclear("scratch", one.text) for one in found] if is_scratch else found)
        findings.extend(env.overwrites(operand) if name in _EMPTIES and not any(map(_ADDS.fullmatch, words)) else [])
    if name in _COPIES:
        findings.extend(_copy(name, operands or [""], env))
    opens = name in ("chmod", "install") and any(map(_OPENS.fullmatch, words))
    if opens or (name.startswith("ch") and is_recursive):
        findings.append(dangerous("mode", f"{name} opens files to everybody, or changes a whole tree", held=True))
    if name in ("ed", "ex") and (env.feed.is_pipe or "!" in (env.feed.text or "")):
        findings.append(dangerous("piped-script", f"the input of {name} may run commands", held=True))
    return findings


def _copy(name: str, operands: Sequence[str], env: ShellEnv) -> list[Finding]:
    if name in ("rsync", "scp") and any(map(_REMOTE.fullmatch, operands)):
        env.brings_text(name)
        return [dangerous("upload", f"{name} copies from or to another machine")]
    *sources, target = operands
    findings: list[Finding] = []
    for source in sources or (operands if name == "ln" else ()):
        findings.extend(env.path(source, PathOp.READ))
        if name in ("mv", "ln", "link"):
            findings.extend(env.path(source, PathOp.WRITE))
        if name == "mv" and _may_be_folder(source, env):
            findings.append(unclear("unknown-writes", f"{name} {shown(source)} takes along whatever it holds"))
        # Into a directory, a copy keeps its name: the name counts as a target too.
        kept = env.path(posixpath.join(target, posixpath.basename(source.rstrip("/"))), PathOp.WRITE)
        findings.extend(found for found in kept if found.rule == "control-write")
    if name == "mv" and target.startswith("/dev/"):
        findings.append(dangerous("delete-tree", f"moves files away into {target}"))
    loses = env.overwrites(target, *sources) if name not in ("ln", "link") or sources else []
    return [*findings, *(env.path(target, PathOp.WRITE) if target else []), *loses]


def _may_be_folder(path: str, env: ShellEnv) -> bool:
    if not is_static(path) or env.cwd == UNKNOWN:
        return True
    facts = env.context.files.facts(posixpath.normpath(posixpath.join(env.cwd, path)))
    return facts is not None and facts.kind is FileKind.DIRECTORY


def _remove(name: str, operands: Sequence[str], env: ShellEnv, *, is_recursive: bool) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "delete", f"{name} deletes files")]
    for operand in operands:
        findings.extend(env.path(operand, PathOp.WRITE))
        is_known = is_static(operand) and env.cwd != UNKNOWN and ".." not in operand.split("/")
        last = posixpath.basename(operand.rstrip("/"))
        is_made_again = (is_known and last in REGENERABLE) or (UNKNOWN not in operand and last.endswith(".egg-info"))
        if env.throws_away(operand):
            continue
        keeps = is_known and env.context.keeps(posixpath.normpath(posixpath.join(env.cwd, operand)))
        if is_recursive and not is_made_again:
            findings.append(dangerous("delete-tree", f"deletes {shown(operand)} and everything below it", held=keeps))
        elif is_known and not is_made_again and env.context.confined and not keeps:
            findings.append(dangerous("data-loss", f"deletes {shown(operand)}, which no checkpoint is sure to hold"))
    return findings


WRITERS = _REMOVERS | _NAMED | _FURTHER
FILE_PROGRAMS: dict[str, ProgramJudge] = {
    **dict.fromkeys(WRITERS, _write),
    **dict.fromkeys(readers(), _read),
}
"""Judges by program name."""
