"""git: what it changes, destroys or reaches, and what the configuration of the repository would run."""

import posixpath
import re
from collections.abc import Sequence

from msgspec.structs import replace

from treadle.policy.findings import WRITES_GIT, Finding, PathOp, dangerous, is_plain, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.repository import UNREADABLE_SETTINGS, runs_at_next_step, surprising_settings
from treadle.policy.shell.danger_forms import dangerous_form
from treadle.policy.shell.git_configuring import find_stopped, is_harmless_setting, judge_config
from treadle.policy.shell.git_reading import GIT_READERS, is_dry_run, judge_reading
from treadle.policy.shell.handed_lists import judge_whole
from treadle.policy.shell.interpreters import judge_outputs
from treadle.policy.shell.network_programs import PUBLISHES
from treadle.policy.shell.readers import read_arguments, read_table
from treadle.policy.shell.shell_env import ShellEnv
from treadle.protocol.tools import Risk

_GLOBAL = read_table(
    "-Pvh -C: -c: --no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --bare --help"
    " --version --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path"
    " --info-path --namespace: --attr-source: --git-dir: --work-tree: --exec-path? --config-env:"
)
_ELSEWHERE = ("--git-dir", "--work-tree", "--exec-path", "--config-env", "--bare")
_NOT_TRUSTED = "the folder is not trusted and has its own settings"
_NAMES_ONLY = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
"""Subcommands that show that a file is there, never what it holds."""

_LEAVES_REPOSITORY = word_set("""
    annotate apply archive check-mailmap check-ref-format column fast-export fmt-merge-msg format-patch fsck
    get-tar-commit-id hash-object help interpret-trailers merge-file merge-tree patch-id range-diff request-pull
    show-branch show-index stripspace var verify-commit verify-pack verify-tag version whatchanged
""")
"""Other subcommands that change nothing of the repository in their usual use."""

_OF_GIT = frozenset({*GIT_READERS, *_LEAVES_REPOSITORY}) | word_set("""
    add am bisect bundle checkout checkout-index cherry-pick clean clone commit commit-graph commit-tree config fetch gc
    index-pack init init-db lfs ls-remote mailinfo mailsplit maintenance merge mktag mktree multi-pack-index mv notes
    pack-objects pack-refs prune prune-packed pull push read-tree rebase repack replace rerere reset restore revert rm
    sparse-checkout stage subtree switch unpack-file unpack-objects update-index update-ref update-server-info
    write-tree
""")
"""All subcommands of which it is known what they do, and that they run no program that their words name.

Another name is an alias, a program on PATH, or a helper of git that runs or obeys what it is given.
"""

_TAKES_IN = re.compile(r"--ca.*|--in[dt].*|-[3N]|--3.*")
"""Options with which `git apply` changes the index, too."""

_IN_PROGRESS = re.compile(r"--(abort|continue|skip|quit|resolved|show-current-patch)(=.*)?|-r")

_MAKES = frozenset({"clone", "init", "worktree", "bundle", "mv", "rm", "update-index"})
_CONNECTS = frozenset({"fetch", "pull", "ls-remote", "clone", "submodule"})
_ADDRESS = re.compile(r"\w+://|[\w.-]+@[\w.-]+:")


def judge_git(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge one git command line: first what stands before the subcommand."""
    outer = read_arguments(_GLOBAL, words, permute=False)
    # Behind an option that is not known the next word may be its value, and the command another one.
    ask = [dangerous if word.startswith("--") and word != "--paginate" else unclear for word in outer.strange]
    said = [f"git: {shown(word)!r} is not a known option" for word in outer.strange]
    findings = [one("unknown-option", text) for one, text in zip(ask, said, strict=True)]
    for option in outer.given:
        setting = option.value or ""
        if option.name in _ELSEWHERE or (option.name == "-c" and not is_harmless_setting(setting)):
            text = f"git {option.name} {shown(setting)} can make git run something, or work elsewhere"
            findings.append(dangerous("git-option", text))
    start, places = env, outer.values("-C")
    for place in places:
        found = start.path(place, PathOp.LIST)
        trusted = start.is_trusted and start.context.trusts(posixpath.join(start.cwd, place))
        if not (trusted and is_static(place) and places == [place] and is_plain(found)):
            text = "git -C works in another directory"
            found.append(Finding(Risk.EXECUTE, "git-option", text, always_asks=not trusted))
        findings.extend(found)
        env = replace(env, cwd=posixpath.join(env.cwd, place))
        env.trace.places.append(env.cwd)
    command, *rest = outer.operands or ("help",)
    if not is_static(command):
        return [*findings, dangerous("unknown-program", "the git command is unknown until it runs", held=True)]
    return findings + _command(command, rest, env)


def _command(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    # Other options name a directory to write to.
    spelled = [re.sub(r"^--(separate-git-dir|directory)\b", "--output", word) for word in words]
    findings = judge_outputs(spelled, env)
    telling = [word for word in words if word.startswith("-") or command not in _NAMES_ONLY]
    named = (found for word in telling for found in env.mentions(word))
    findings.extend(found for found in named if found.rule == "secret-read")
    if command in _MAKES:
        plain = [word for word in words if not word.startswith("-")][command == "clone" :]
        # What is put into the index under a name (MODE,OBJECT,NAME) need not be the file of that name.
        made = (one for word in plain for one in env.path(word.rpartition(",")[2], PathOp.WRITE))
        findings.extend(one for one in made if one.risk is Risk.CRITICAL)
    if command in ("mv", "rm") and "--cached" not in words:
        findings.extend(one for one in judge_whole("rm", words, env) if one.rule == "delete-all")
    is_private = env.cwd != UNKNOWN and env.context.is_private(env.cwd)
    harm = _harm(command, words, env)
    if harm:
        kept = (harm.endswith(_DISCARDS) and env.context.keeps_changes) or is_private
        findings.append(dangerous("git", f"git {command} {harm}", held=kept))
    found = _use(command, words, env)
    reads = any(one.rule == "git-read" for one in found)
    if not reads and not (command == "config" and found):  # what was found of a setting says it better
        findings.insert(0, _writes(command, words, is_private=is_private))
    return [*findings, *found, *_repository(env, reads=reads)]


def _writes(command: str, words: Sequence[str], *, is_private: bool) -> Finding:
    """Say of a use of git that it does more than read; a repository may be in a place that is the commands' own.

    What a script does that git runs in each submodule, its own commands say.
    """
    leaves = command in _LEAVES_REPOSITORY and not (command == "apply" and any(map(_TAKES_IN.fullmatch, words)))
    if leaves or is_private or (command == "submodule" and "foreach" in words):
        return Finding(Risk.EXECUTE, "git", f"this use of git {command} is not known to be read-only")
    return Finding(Risk.EXECUTE, WRITES_GIT, f"git {command} changes the repository")


def _repository(env: ShellEnv, *, reads: bool) -> list[Finding]:
    """Ask before git runs in a folder that is not trusted: in every mode where it may run something of the folder's.

    What reads there asks where nothing confines it; confined it runs hardened.
    """
    if env.is_trusted:
        return []
    named = surprising_settings(env.cwd, env.context.files) if is_static(env.cwd) else [UNREADABLE_SETTINGS]
    if named:
        return [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED}: {named[0]}", always_asks=True)]
    asks = reads and not env.context.confined
    return [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED} for git")] if asks else []


_DISCARDS = "discards uncommitted changes"


def _harm(command: str, words: Sequence[str], env: ShellEnv) -> str:
    """Say what a subcommand may do that is dangerous with these words; one that is not known may do anything."""
    form = dangerous_form(f"git-{command}", words[: words.index("--")] if "--" in words else words)
    if form is not None and not is_dry_run(command, words):
        return f"{shown(form)} destroys, leaks or runs something".strip()
    if command not in _OF_GIT:
        return "is not a command that Treadle knows: an alias, a program or a helper that may do anything"
    return _effect(command, words, env)


def _effect(command: str, words: Sequence[str], env: ShellEnv) -> str:
    """Say what a subcommand discards, rewrites or reaches with these words."""
    plain = [word for word in words if not word.startswith("-")]

    def has(pattern: str) -> bool:
        return any(re.fullmatch(pattern, word, re.DOTALL) for word in words)

    paths = has(r"--(ours|theirs)?|\.|(\./|:|--pathspec-from).*")
    makes = has("-b|--orphan|-t")
    match command:
        case "rebase" if has("--(cont|skip).*") and _has_steps(env):
            return "continues with steps that run programs"
        case _ if has("(ext|fd)::.*"):
            return "is given an address that runs a command"
        case "clean" if not is_dry_run(command, words):
            return "deletes untracked files"
        case "restore" if not has("--staged|-S") or has("--worktree|-W|-SW|-WS"):
            return _DISCARDS
        case "checkout" if paths or (not makes and (len(plain) > 1 or any(_is_there(word, env) for word in plain))):
            return f"of paths {_DISCARDS}"
        case "symbolic-ref" if len(plain) != 1 or not is_static(plain[0]) or has("-(?!q|-quiet|-short).*"):
            return "moves refs"
        case "fetch" | "pull" if has(r"\+[^:]*:(?!refs/remotes/).+"):
            return "rewrites branches or tags"
        case "push":
            return _publishing(words)
        case _:
            return ""


def _has_steps(env: ShellEnv) -> bool:
    """Whether an open rebase goes on with programs; where the directory is unknown, one of the workspace."""
    places = (env.cwd,) if is_static(env.cwd) else env.context.roots
    return any(runs_at_next_step(place, env.context.files) for place in places)


def _publishing(words: Sequence[str]) -> str:
    if any(re.fullmatch(r".*://.*|[\w.-]+@[\w.-]+:.*|[/~.].*", word, re.DOTALL) for word in words):
        return "publishes to an address that is not a remote of the repository"
    rewrites = any(word[:1] in ("+", ":") for word in words) or not all(map(is_static, words))
    return "rewrites or deletes what is published" if rewrites else ""


def _is_there(word: str, env: ShellEnv) -> bool:
    """Whether a word names files that are there; a pattern may always do."""
    if is_glob(word) or "*" in word:
        return True
    is_known = is_static(word) and env.cwd != UNKNOWN
    return is_known and env.context.files.facts(posixpath.join(env.cwd, word)) is not None


def _use(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge what a subcommand reads or reaches."""
    if command == "config":
        return judge_config(words, env)
    rest = [word for word in words if word not in ("--recursive", "--quiet", "-q", "--")]
    if without := find_stopped(command, rest, env):
        return without
    if command == "push":
        return [Finding(Risk.REMOTE, PUBLISHES, "git push publishes commits")]
    if command == "submodule" and rest[:1] == ["foreach"]:
        return env.script(" ".join(rest[1:]))
    takes_in = command == "am" or (command == "subtree" and rest[:1] != ["split"])
    if takes_in and not any(map(_IN_PROGRESS.fullmatch, words)):
        text = f"git {command} commits what it is given, control files too"
        return [Finding(Risk.EXECUTE, "git", text, always_asks=True)]
    found = judge_reading(command, words, env)
    if found or command not in _CONNECTS:
        return found
    if command == "clone" or any(map(_ADDRESS.search, words)):
        # What the folder's own remotes send counts as the folder's.
        env.brings_text("git")
    local = (word for word in words if word.startswith(("/", "~", "../", "file:")))
    rule = "network" if command == "submodule" else "download"
    connects = Finding(Risk.REMOTE, rule, "git connects to another repository")
    return [connects, *(one for word in local for one in env.path(word, PathOp.READ))]
