"""git: what only reads, what destroys, and what the repository's own configuration would run."""

import posixpath
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.repository import UNKNOWN_SETTINGS, hooks, surprising_settings
from treadle.policy.shell.danger_forms import dangerous_form
from treadle.policy.shell.interpreters import judge_outputs
from treadle.policy.shell.lists import judge_whole
from treadle.policy.shell.network import PUBLISHES
from treadle.policy.shell.readers import Arguments, read_arguments, read_table
from treadle.policy.shell.shell_env import ShellEnv
from treadle.protocol.tools import Risk

OF_THE_REPOSITORY = "git-settings"
"""The rule by which a setting of a trusted repository is known that git would obey."""

_GLOBAL = read_table(
    "-Pvh -C: -c: --no-pager --no-optional-locks --literal-pathspecs --bare --version --namespace:"
    " --git-dir: --work-tree: --exec-path? --config-env:"
)
_ELSEWHERE = ("--git-dir", "--work-tree", "--exec-path", "--config-env")
_READERS = word_set("""
    status diff log show shortlog rev-list rev-parse reflog ls-files ls-tree cat-file for-each-ref show-ref merge-base
    name-rev describe blame grep cherry count-objects check-ignore check-attr diff-tree diff-index diff-files branch tag
    stash remote worktree submodule
""")
_READS_COMMITS = word_set(
    "log show shortlog rev-list rev-parse reflog branch tag for-each-ref show-ref merge-base cat-file ls-tree"
)
"""Subcommands that read what is committed, never the files: these look into no other repository."""

_SHORT = re.compile(r"-[0-9abcdDeEFGhHiIklLmMnNopPqrsStuUvwWxXyzZ]+|-[nULSGABCM].+|-u(no|all)")
_LONG = word_set("""
    --stat --numstat --shortstat --summary --dirstat --name-only --name-status --color --no-color --word-diff --patch
    --no-patch --raw --oneline --ignore-all-space --ignore-space-change --unified --no-renames --find-renames
    --find-copies --diff-filter --cached --staged --merge-base --check --exit-code --quiet --no-ext-diff --no-textconv
    --relative --compact-summary --max-count --since --after --until --before --author --committer --grep --merges
    --no-merges --first-parent --all --branches --tags --remotes --format --pretty --date --graph --decorate
    --no-decorate --abbrev-commit --abbrev --follow --reverse --topo-order --left-right --cherry-pick --count
    --max-parents --objects --simplify-by-decoration --short --branch --show-stash --porcelain --untracked-files
    --ignored --verify --abbrev-ref --symbolic-full-name --show-toplevel --show-prefix --git-dir --is-inside-work-tree
    --git-path --deleted --modified --others --stage --exclude-standard --error-unmatch --points-at --contains --merged
    --no-merged --sort --heads --is-ancestor --always --dirty --show-email --line-porcelain --ignore-case --word-regexp
    --extended-regexp --fixed-strings --line-number --files-with-matches --break --heading --no-commit-id --show-current
    --list --verbose --no-pager
""")
"""Options with which these subcommands only show; they take their values glued or as another operand."""

_SHOWS_ALL = word_set("-l --list -a -r -v -vv -n --all --remotes --contains --no-contains --merged --no-merged")
_LISTS = {"branch": _SHOWS_ALL - {"-n"}, "tag": _SHOWS_ALL - {"-a", "-v", "-r"} | {"--points-at"}}
"""Subcommands that create something when an operand comes without one of these options."""

_FIRST_WORDS = {
    "stash": ("list", "show"),
    "remote": ("-v", "get-url"),
    "worktree": ("list",),
    "submodule": ("status",),
}
"""First words with which a subcommand that otherwise changes something only shows; none but for stash is one, too."""

_HARMLESS_KEYS = re.compile(
    r"(user\.(name|email)|color\..*|advice\..*|column\.ui|core\.(quotepath|abbrev|autocrlf|eol|ignorecase|safecrlf|filemode)"
    r"|log\.(date|decorate|abbrevcommit)|diff\.(algorithm|renames|context|mnemonicprefix|noprefix|colormoved)"
    r"|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|fetch\.prune|merge\.conflictstyle"
    r"|branch\.[^.]*\.(remote|merge|rebase)|rerere\.enabled)",
    re.IGNORECASE,
)
"""Settings that change how something looks, or a habit, whatever they are set to."""

_CONFIG_READS = word_set("--get --get-all --show-origin --show-scope --local --global --type --null -z")
_HARDENED = frozenset({"core.pager=cat", "core.pager=", "core.fsmonitor=false", "core.hooksPath=/dev/null"})
_NOT_TRUSTED = "the folder is not trusted (`treadle trust`) and has its own settings"
_NAMES_ONLY = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
"""Subcommands that show that a file is there, never what it holds."""

_MAKES = frozenset({"clone", "init", "worktree", "bundle", "mv", "rm"})
_CREDENTIAL = re.compile(r"token|passw|credential|extraheader", re.IGNORECASE)


def judge_git(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge one git command line."""
    outer = read_arguments(_GLOBAL, words, permute=False)
    findings = _judge_global(outer, env)
    for place in outer.values("-C"):
        env = replace(env, cwd=posixpath.join(env.cwd, place))
        env.trace.places.append(env.cwd)
    if any(re.match(r"(ext|fd)::", word) for word in words):
        findings.append(dangerous("git-transport", "the address runs a command"))
    if list(words) in (["--version"], ["-v"], ["version"]):
        return [Finding(Risk.READ, "version", "git prints its version")]
    command, *rest = outer.operands or ("help",)
    if not is_static(command):
        return [*findings, dangerous("unknown-program", "the git command is unknown until it runs")]
    return findings + _command(command, rest, env)


def _judge_global(outer: Arguments, env: ShellEnv) -> list[Finding]:
    findings = [unclear("unknown-option", f"git: {shown(word)!r} is not a known option") for word in outer.strange]
    for option in outer.given:
        if option.name in _ELSEWHERE:
            findings.append(dangerous("git-option", f"git {option.name} uses other programs or another repository"))
        if option.name == "-C" and option.value is not None:
            findings.extend(_judge_place(option.value, outer, env))
        if option.name == "-c" and not _is_harmless(option.value or ""):
            findings.append(dangerous("git-option", f"git -c {option.value} can make git run something"))
    return findings


def _judge_place(place: str, outer: Arguments, env: ShellEnv) -> list[Finding]:
    found = env.path(place, PathOp.LIST)
    is_known = is_static(place) and len(outer.values("-C")) == 1
    trusted = env.is_trusted and env.context.trusts(posixpath.join(env.cwd, place))
    if trusted and is_known and all(one.risk is Risk.READ for one in found):
        return found
    elsewhere = "git -C works in another directory"
    return [*found, Finding(Risk.EXECUTE, "git-option", elsewhere, always_asks=not trusted)]


def _is_harmless(setting: str) -> bool:
    key = setting.partition("=")[0]
    return is_static(setting) and (setting in _HARDENED or _HARMLESS_KEYS.fullmatch(key) is not None)


def _command(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    # Other options name a directory to write to.
    spelled = [re.sub(r"^--(separate-git-dir|directory)\b", "--output", word) for word in words]
    findings = judge_outputs(spelled, env)
    form = dangerous_form(f"git-{command}", words[: words.index("--")] if "--" in words else words)
    if form is not None:
        findings.append(dangerous("git", f"{form} destroys, leaks or runs something"))
    telling = [word for word in words if word.startswith("-") or command not in _NAMES_ONLY]
    named = (found for word in telling for found in env.mentions(word))
    findings.extend(found for found in named if found.rule == "secret-read")
    if command in _MAKES:
        findings.extend(_made(command, words, env))
    special = _SPECIAL.get(command)
    found = special(words, env) if special is not None else _reading(command, words, env)
    if any(one.rule == "git-read" for one in found):
        return [*findings, *found, *_repository(command, env)]
    asks = Finding(Risk.EXECUTE, "git", f"this use of git {command} is not known to be read-only")
    return [asks, *findings, *found, *_untrusted(env)]


def _reading(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a subcommand that reads; nothing when this use of it is none."""
    if command not in _READERS:
        return []
    first = "".join(words[:1])
    if command in _FIRST_WORDS and first not in _FIRST_WORDS[command] and (words or command == "stash"):
        return []
    options = [word for word in words if word.startswith("-")]
    operands = [word for word in words if not word.startswith("-")]
    if command in _LISTS and operands and _LISTS[command].isdisjoint(word.partition("=")[0] for word in options):
        return []
    findings = [Finding(Risk.READ, "git-read", f"git {command} only reads")]
    for word in options:
        findings.extend(_git_option(command, word))
    for operand in operands:
        if operand.startswith(("/", "../")) or operand == "..":
            findings.extend(env.path(operand, PathOp.READ))
        elif UNKNOWN in operand or not is_static(operand[:1]):
            findings.append(unclear("unknown-operand", "the revision or path is unknown until it runs"))
    return findings


def _git_option(command: str, word: str) -> list[Finding]:
    name = word.partition("=")[0]
    is_known = is_static(word) and (word == "--" or name in _LONG or _SHORT.fullmatch(word) is not None)
    changes = command in _LISTS and re.match(r"-[^-]*[dDmMcCfFasu]", word) and not word.startswith("-a")
    if not is_known or changes or "%G" in word or "signature" in word or (command == "blame" and word.startswith("-S")):
        return [unclear("unknown-option", f"git {command}: {shown(word)!r} is not known to be harmless")]
    return []


def _repository(command: str, env: ShellEnv) -> list[Finding]:
    """Ask before git reads where the folder's own settings would make it run something.

    In a folder that is not trusted it is asked at any rate where nothing confines it; confined it runs hardened.
    """
    if not env.is_trusted:
        hardened = [] if env.context.confined else [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED} for git")]
        return _untrusted(env) or hardened
    looks = command not in _READS_COMMITS
    settings = surprising_settings(env.cwd, env.context.files, looks_into_others=looks)
    said = (f"{'has' if setting in UNKNOWN_SETTINGS else 'sets'} {setting}" for setting in settings)
    return [Finding(Risk.EXECUTE, OF_THE_REPOSITORY, f"the repository {text}") for text in said]


def _untrusted(env: ShellEnv) -> list[Finding]:
    """Ask in every mode before git runs where a folder that is not trusted names programs for it."""
    if env.is_trusted:
        return []
    files = env.context.files
    settings = surprising_settings(env.cwd, files)
    named = [name if name in UNKNOWN_SETTINGS else f"the setting {name}" for name in settings]
    named.extend(f"the hook {name}" for name in hooks(env.cwd, files))
    return [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED}: {named[0]}", always_asks=True)] if named else []


def _made(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge what a subcommand makes, moves or removes, and where."""
    plain = [word for word in words if not word.startswith("-")]
    if command in ("worktree", "bundle", "clone"):
        plain = plain[1:]
    found = [one for word in plain for one in env.path(word, PathOp.WRITE) if one.risk is Risk.CRITICAL]
    whole = command in ("mv", "rm") and "--cached" not in words
    return found + (judge_whole("rm", words, env) if whole else [])


def _clean(words: Sequence[str], _env_of: ShellEnv) -> list[Finding]:
    if any(re.fullmatch(r"-\w*n\w*|--dry-run", word) for word in words):
        return []
    return [dangerous("git", "git clean deletes untracked files")]


def _checkout(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    paths = "--" in words or any(word == "." or word.startswith(("./", ":", "--pathspec-from")) for word in words)
    plain = [word for word in words if not word.startswith("-")]
    makes = not {"-b", "--orphan", "-t"}.isdisjoint(words)
    if paths or (not makes and (len(plain) > 1 or any(_is_there(word, env) for word in plain))):
        return [dangerous("git", "git checkout of paths discards uncommitted changes")]
    return []


def _is_there(word: str, env: ShellEnv) -> bool:
    """Whether a word names files that are there; a pattern may always do."""
    if is_glob(word) or "*" in word:
        return True
    is_known = is_static(word) and env.cwd != UNKNOWN
    return is_known and env.context.files.facts(posixpath.join(env.cwd, word)) is not None


def _restore(words: Sequence[str], _env_of: ShellEnv) -> list[Finding]:
    staged = any(word in ("--staged", "-S") for word in words)
    if staged and not any(word in ("--worktree", "-W", "-SW", "-WS") for word in words):
        return []
    return [dangerous("git", "git restore discards uncommitted changes")]


def _push(words: Sequence[str], _env_of: ShellEnv) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, PUBLISHES, "git push publishes commits")]
    if any("://" in word or re.match(r"[\w.-]+@[\w.-]+:|[/~.]", word) for word in words):
        findings.append(dangerous("git", "git push publishes to an address that is not a remote of the repository"))
    if any(word.startswith(("+", ":")) for word in words) or any(not is_static(word) for word in words):
        findings.append(dangerous("git", "git push rewrites or deletes what is published"))
    return findings


def _over_network(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    local = (word for word in words if word.startswith(("/", "~", "../", "file:")))
    found = [one for word in local for one in env.path(word, PathOp.READ)]
    return [Finding(Risk.REMOTE, "download", "git connects to another repository"), *found]


def _config(words: Sequence[str], _env_of: ShellEnv) -> list[Finding]:
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    plain = [word for word in words if not word.startswith("-")]
    if any(_CREDENTIAL.search(word) for word in plain) and (flags or len(plain) == 1 or plain[0] == "get"):
        return [dangerous("git-config", "shows stored credentials")]
    if flags & {"-l", "--list", "--get-regexp"} or plain[:1] == ["list"]:
        text = "a list of settings may show tokens in headers and addresses; git config --get NAME shows one setting"
        return [unclear("git-config", text)]
    one = len(plain) == 1 and "." in plain[0] and flags <= {"--global", "--local"}
    if flags & {"--get", "--get-all"} or plain[:1] == ["get"] or one:
        known = flags <= _CONFIG_READS and all(is_static(word) for word in plain)
        shows = Finding(Risk.READ, "git-read", "git config shows a setting")
        return [shows] if known else [unclear("git-config", "git config with something unknown")]
    if flags & {"--global", "--worktree"}:
        return [dangerous("git-config", "changes the settings of every repository")]
    key = next((word for word in plain if "." in word), "")
    if not _HARMLESS_KEYS.fullmatch(key):
        return [dangerous("git-config", f"the setting {key} can make git run something")]
    return []


def _submodule(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    rest = [word for word in words if word not in ("--recursive", "--quiet", "-q", "--")]
    if rest[:1] == ["foreach"]:
        return env.script(" ".join(rest[1:]))
    reads = _reading("submodule", words, env)
    return reads or [Finding(Risk.REMOTE, "network", "git connects to another repository")]


def _symbolic_ref(words: Sequence[str], _env_of: ShellEnv) -> list[Finding]:
    """Judge symbolic-ref: with one name it tells where that leads, with two or with an option it changes it."""
    plain = [word for word in words if word not in ("-q", "--quiet", "--short")]
    if len(plain) == 1 and is_static(plain[0]) and not plain[0].startswith("-"):
        return [Finding(Risk.READ, "git-read", "git symbolic-ref shows a ref")]
    return [dangerous("git", "git symbolic-ref moves refs")]


_SPECIAL: dict[str, Callable[[Sequence[str], ShellEnv], list[Finding]]] = {
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "push": _push,
    "config": _config,
    "submodule": _submodule,
    "symbolic-ref": _symbolic_ref,
    **dict.fromkeys(("fetch", "pull", "ls-remote", "clone"), _over_network),
}
