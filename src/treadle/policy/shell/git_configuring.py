"""Git's configuration, and other repositories: what shows or writes them, and how far the sandbox lets it."""

import re
from collections.abc import Sequence

from treadle.policy.findings import WITHOUT_SANDBOX, Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static, shown, word_set
from treadle.policy.shell.shell_env import ShellEnv
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

_KEYS = (
    r"(?i:user\.(name|email|signingkey|useconfigonly)|(color|advice)\..*|column\.ui|core\.(quotepath|abbrev|autocrlf|eol|ignorecase|safecrlf|filemode)"
    r"|log\.(date|decorate|abbrevcommit)|diff\.(algorithm|renames|context|mnemonicprefix|noprefix|colormoved)"
    r"|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|fetch\.prune|merge\.conflictstyle"
    r"|branch\..+\.(remote|merge|rebase|description)|rerere\.enabled)"
)
"""Settings that change how something looks, or a habit, whatever they are set to."""

_HARDENED = frozenset({"core.pager=cat", "core.pager=", "core.fsmonitor=false", "core.hooksPath=/dev/null"})
_CONFIG_READS = word_set("--get --get-all --show-origin --show-scope --local --global --type --null -z")

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

_CREDENTIAL = re.compile(r"token|passw|credential|extraheader", re.IGNORECASE)


def is_harmless_setting(setting: str) -> bool:
    """Whether a setting that is given for one run makes git run nothing."""
    return setting in _HARDENED or (is_static(setting) and re.fullmatch(_KEYS, setting.partition("=")[0]) is not None)


def find_stopped(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
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


def judge_config(words: Sequence[str], env: ShellEnv) -> list[Finding]:
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
