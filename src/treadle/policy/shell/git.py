"""git: what only reads, what destroys, and what the repository's own configuration would run."""

import posixpath
import re
from collections.abc import Sequence

from msgspec.structs import replace

from treadle.policy.findings import WITHOUT_SANDBOX, WRITES_GIT, Finding, PathOp, dangerous, is_plain, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, word_set
from treadle.policy.repository import UNREADABLE_SETTINGS, runs_at_next_step, surprising_settings
from treadle.policy.shell.danger_forms import dangerous_form
from treadle.policy.shell.handed_lists import judge_whole
from treadle.policy.shell.interpreters import judge_outputs
from treadle.policy.shell.network_programs import PUBLISHES
from treadle.policy.shell.readers import read_arguments, read_table
from treadle.policy.shell.shell_env import ShellEnv
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

_GLOBAL = read_table(
    "-Pvh -C: -c: --no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --bare --help"
    " --version --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path"
    " --info-path --namespace: --attr-source: --git-dir: --work-tree: --exec-path? --config-env:"
)
_ELSEWHERE = ("--git-dir", "--work-tree", "--exec-path", "--config-env")
_READERS = word_set("""
    log show shortlog rev-list rev-parse reflog branch tag for-each-ref show-ref merge-base cat-file ls-tree
    status diff ls-files name-rev describe blame grep cherry count-objects check-ignore check-attr diff-tree diff-index
    diff-files stash remote worktree submodule symbolic-ref
""")
_SHORT = re.compile(r"--|-[0-9abcdDeEFGhHiIklLmMnNopPqrsStuUvwWxXyzZ]+|-[nULSGABCM].+|-u(no|all)")
_LONG = word_set("""
    --stat --numstat --shortstat --summary --name-only --name-status --color --no-color --word-diff --no-patch --oneline
    --diff-filter --cached --staged --check --exit-code --quiet --no-ext-diff --max-count --since --until --author
    --grep --merges --no-merges --first-parent --all --tags --format --pretty --date --graph --decorate --no-decorate
    --abbrev-commit --abbrev --follow --reverse --left-right --count --short --branch --porcelain --ignored --verify
    --untracked-files --abbrev-ref --show-toplevel --git-dir --git-path --others --exclude-standard --merged --contains
    --sort --is-ancestor --always --no-commit-id --show-current --list --no-pager --is-inside-work-tree --dirty
""")
"""Options with which these subcommands only show; they take their values glued or as another operand."""

_SHOWS_ALL = word_set("-l --list -a -r -v -vv -n --all --remotes --contains --no-contains --merged --no-merged")
_LISTS = {"branch": _SHOWS_ALL - {"-n"}, "tag": _SHOWS_ALL - {"-a", "-v", "-r"} | {"--points-at"}}
"""Subcommands that create something when an operand comes without one of these options."""

_FIRST_WORDS = {"stash": ("list", "show"), "remote": ("-v", "get-url"), "worktree": ("list",), "submodule": ("status",)}
"""First words with which a subcommand that otherwise changes something only shows; none but for stash is one, too."""

_KEYS = (
    r"(?i:user\.(name|email|signingkey|useconfigonly)|(color|advice)\..*|column\.ui|core\.(quotepath|abbrev|autocrlf|eol|ignorecase|safecrlf|filemode)"
    r"|log\.(date|decorate|abbrevcommit)|diff\.(algorithm|renames|context|mnemonicprefix|noprefix|colormoved)"
    r"|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|fetch\.prune|merge\.conflictstyle"
    r"|branch\..+\.(remote|merge|rebase|description)|rerere\.enabled)"
)
"""Settings that change how something looks, or a habit, whatever they are set to."""

_HARDENED = frozenset({"core.pager=cat", "core.pager=", "core.fsmonitor=false", "core.hooksPath=/dev/null"})
_CONFIG_READS = word_set("--get --get-all --show-origin --show-scope --local --global --type --null -z")
_NOT_TRUSTED = "the folder is not trusted and has its own settings"
_NAMES_ONLY = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
"""Subcommands that show that a file is there, never what it holds."""

_LEAVES_REPOSITORY = word_set("""
    annotate apply archive check-mailmap check-ref-format column fast-export fmt-merge-msg format-patch fsck
    get-tar-commit-id hash-object help interpret-trailers merge-file merge-tree patch-id range-diff request-pull
    show-branch show-index stripspace var verify-commit verify-pack verify-tag version whatchanged
""")
"""Other subcommands that change nothing of the repository in their usual use."""

_OF_GIT = frozenset({*_READERS, *_LEAVES_REPOSITORY}) | word_set("""
    add am bisect bundle checkout checkout-index cherry-pick clean clone commit commit-graph commit-tree config fetch gc
    index-pack init init-db lfs ls-remote mailinfo mailsplit maintenance merge mktag mktree multi-pack-index mv notes
    pack-objects pack-refs prune prune-packed pull push read-tree rebase repack replace rerere reset restore revert rm
    sparse-checkout stage subtree switch unpack-file unpack-objects update-index update-ref update-server-info
    write-tree
""")
"""All subcommands of which it is known what they do, and that they run no program that their words name.

Another name is an alias, a program on PATH, or a helper of git that runs or obeys what it is given.
"""

_TAKES_IN = re.compile(r"--cached|--ind.*|-3|--3.*")
"""Options with which `git apply` changes the index, too."""

_IN_PROGRESS = re.compile(r"--(abort|continue|skip|quit|resolved|show-current-patch)(=.*)?|-r")

_DRY = frozenset({"add", "clean", "mv", "prune", "reflog", "rm"})
_DRY_SHORT = re.compile(r"-[A-Za-df-z]*n[A-Za-df-z]*")
_NOT_DRY = re.compile(r"-[a-z]*e|--no-d.*|--e.*|--pathspec.*|--chmod.*")
"""Options of which the next word may be the value, so that it may be no option, and the way back."""

_OF_OTHER_REPOSITORIES = {
    "worktree": word_set("add move prune remove repair"),
    "submodule": word_set("absorbgitdirs add deinit init set-branch set-url sync update"),
}
_DRY_RUNS = frozenset({"-n", "--dry-run"})
_WRITE_SETTINGS = {
    "lfs": word_set("install uninstall"),
    "maintenance": word_set("register start stop unregister"),
    "remote": word_set("add remove rename rm set-branches set-url"),
    "sparse-checkout": word_set("disable init set"),
}
"""First words with which a subcommand writes git's configuration, and fails where it cannot."""

_RENAMES = re.compile(r"-(?!.*u)[a-zA-Z]*[mMcC][a-zA-Z]*|--(move|copy|edit-description)")
"""Options of `git branch` with which it does, too."""

_BY_TREADLE = re.compile(
    r"(?i:user\.(name|email|signingkey|useconfigonly)|branch\..+\.(remote|merge|rebase|description))"
)
"""What Treadle itself writes for a command, with these options (`namespaces/git_settings.py`)."""

_FORMS_BY_TREADLE = word_set("--local --replace-all --unset --unset-all")

_MAKES = frozenset({"clone", "init", "worktree", "bundle", "mv", "rm", "update-index"})
_CONNECTS = frozenset({"fetch", "pull", "ls-remote", "clone", "submodule"})
_ADDRESS = re.compile(r"\w+://|[\w.-]+@[\w.-]+:")
_CREDENTIAL = re.compile(r"token|passw|credential|extraheader", re.IGNORECASE)


def judge_git(_name: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge one git command line: first what stands before the subcommand."""
    outer = read_arguments(_GLOBAL, words, permute=False)
    # Behind an option that is not known the next word may be its value, and the command another one.
    ask = [dangerous if word.startswith("--") and word != "--paginate" else unclear for word in outer.strange]
    said = [f"git: {shown(word)!r} is not a known option" for word in outer.strange]
    findings = [one("unknown-option", text) for one, text in zip(ask, said, strict=True)]
    for option in outer.given:
        setting = option.value or ""
        is_harmless = setting in _HARDENED or (is_static(setting) and re.fullmatch(_KEYS, setting.partition("=")[0]))
        if option.name in _ELSEWHERE or (option.name == "-c" and not is_harmless):
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


def _reading(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a subcommand that reads; nothing when this use of it is none."""
    if _is_dry_run(command, words):
        return [Finding(Risk.READ, "git-read", f"git {command} only says what it would do")]
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
        if not _only_shows(command, word):
            text = f"git {command}: {shown(word)!r} is not known to be harmless"
            findings.append(unclear("unknown-option", text))
    for operand in operands:
        if operand.startswith(("/", "../")) or operand == "..":
            findings.extend(env.path(operand, PathOp.READ))
        elif UNKNOWN in operand or not is_static(operand[:1]):
            findings.append(unclear("unknown-operand", "the revision or path is unknown until it runs"))
    return findings


def _is_dry_run(command: str, words: Sequence[str]) -> bool:
    """Whether a use says what it would do, and does nothing of it."""
    options = words[: words.index("--")] if "--" in words else words
    wanted = any(word == "--dry-run" or _DRY_SHORT.fullmatch(word) for word in options)
    if command == "reflog" and words[:1] not in (["expire"], ["delete"]):
        return False  # there -n is how many are shown
    return command in _DRY and wanted and all(map(is_static, options)) and not any(map(_NOT_DRY.fullmatch, options))


def _only_shows(command: str, option: str) -> bool:
    is_known = is_static(option) and (option.partition("=")[0] in _LONG or _SHORT.fullmatch(option) is not None)
    changes = command in _LISTS and re.match(r"-(?!a)[^-]*[dDmMcCfFasu]", option)
    runs = "%G" in option or "signature" in option or (command == "blame" and option.startswith("-S"))
    return is_known and not changes and not runs


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
    if form is not None and not _is_dry_run(command, words):
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
        case "clean" if not _is_dry_run(command, words):
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
        return _config(words, env)
    rest = [word for word in words if word not in ("--recursive", "--quiet", "-q", "--")]
    if without := _without_sandbox(command, rest, env):
        return without
    if command == "push":
        return [Finding(Risk.REMOTE, PUBLISHES, "git push publishes commits")]
    if command == "submodule" and rest[:1] == ["foreach"]:
        return env.script(" ".join(rest[1:]))
    takes_in = command == "am" or (command == "subtree" and rest[:1] != ["split"])
    if takes_in and not any(map(_IN_PROGRESS.fullmatch, words)):
        text = f"git {command} commits what it is given, control files too"
        return [Finding(Risk.EXECUTE, "git", text, always_asks=True)]
    found = _reading(command, words, env)
    if found or command not in _CONNECTS:
        return found
    if command == "clone" or any(map(_ADDRESS.search, words)):
        # What the folder's own remotes send counts as the folder's.
        env.brings_text("git")
    local = (word for word in words if word.startswith(("/", "~", "../", "file:")))
    rule = "network" if command == "submodule" else "download"
    connects = Finding(Risk.REMOTE, rule, "git connects to another repository")
    return [connects, *(one for word in local for one in env.path(word, PathOp.READ))]


def _without_sandbox(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Find what the sandbox stops: writing git's configuration, and making, moving or removing another repository.

    Half of that would be done. Such a folder has a `.git`, which no command makes or moves, and its data, as the
    configuration, can name programs.
    """
    if not words or _DRY_RUNS.intersection(words):
        return []
    first = next((word for word in words if not word.startswith("-")), "")
    renames = command == "branch" and any(map(_RENAMES.fullmatch, words)) and not _is_renamed_inside(words)
    if renames or first in _WRITE_SETTINGS.get(command, ()):
        return _writes_settings(command if renames else f"{command} {first}", env)
    if words[0] not in _OF_OTHER_REPOSITORIES.get(command, ()):
        return []
    return _outside(f"git {command} {first} changes another repository as a whole", env)


def _outside(text: str, env: ShellEnv) -> list[Finding]:
    """Ask for a run without the sandbox where there is one, and the place is not the commands' own."""
    own = env.cwd != UNKNOWN and env.context.is_private(env.cwd)
    if own or not env.context.confined or env.context.mode is Mode.PLAN:
        return []
    text = f"{text}, so it runs without the sandbox"
    return [Finding(Risk.EXECUTE, WITHOUT_SANDBOX, text, always_asks=True)]


def _writes_settings(command: str, env: ShellEnv) -> list[Finding]:
    """Judge what writes git's configuration: no command does that in the sandbox, also of a new repository."""
    return _outside(f"git {command} writes git's configuration", env)


def _config(words: Sequence[str], env: ShellEnv) -> list[Finding]:
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    plain = [word for word in words if not word.startswith("-")]
    if any(_CREDENTIAL.search(word) for word in plain) and (flags or len(plain) == 1 or plain[0] == "get"):
        return [dangerous("git-config", "shows stored credentials")]
    if flags & {"-l", "--list", "--get-regexp"} or plain[:1] == ["list"]:
        text = "a list of settings may show tokens in headers and addresses; git config --get NAME shows one setting"
        return [unclear("git-config", text)]
    gets = bool(flags & {"--get", "--get-all"}) or plain[:1] == ["get"]
    one = len(plain) == 1 and "." in plain[0] and flags <= {"--global", "--local"}
    if gets or one:
        known = flags <= _CONFIG_READS and all(map(is_static, plain))
        shows = Finding(Risk.READ, "git-read", "git config shows a setting")
        return [shows if known else unclear("git-config", "git config with something unknown")]
    key = next((word for word in plain if "." in word), "")
    writes = [] if _is_written_inside(key, flags) else _writes_settings("config", env)
    if flags & {"--global", "--worktree"} or not re.fullmatch(_KEYS, key):
        text = f"the setting {shown(key)} is a global one, or can make git run something"
        return [dangerous("git-config", text), *writes]
    return writes


def _is_renamed_inside(words: Sequence[str]) -> bool:
    """Whether a branch is renamed as Treadle does it for a command: its settings go along."""
    first, *names = words
    plain = all(is_static(name) and not name.startswith("-") for name in names)
    return first in ("-m", "--move") and len(names) in (1, 2) and plain


def _is_written_inside(key: str, flags: set[str]) -> bool:
    """Whether a setting is one that Treadle writes for a command, or of a file that is named."""
    return bool(flags & {"-f", "--file"}) or (bool(_BY_TREADLE.fullmatch(key)) and flags <= _FORMS_BY_TREADLE)
