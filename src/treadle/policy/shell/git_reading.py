"""Uses of git that only read, or only say what they would do."""

import re
from collections.abc import Sequence

from treadle.policy.findings import Finding, PathOp, unclear
from treadle.policy.marks import UNKNOWN, is_static, shown, word_set
from treadle.policy.shell.shell_env import ShellEnv
from treadle.protocol.tools import Risk

GIT_READERS = word_set("""
    log show shortlog rev-list rev-parse reflog branch tag for-each-ref show-ref merge-base cat-file ls-tree
    status diff ls-files name-rev describe blame grep cherry count-objects check-ignore check-attr diff-tree diff-index
    diff-files stash remote worktree submodule symbolic-ref
""")
"""Subcommands that read in some of their uses, or in all."""

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

_DRY = frozenset({"add", "clean", "mv", "prune", "reflog", "rm"})
_DRY_SHORT = re.compile(r"-[A-Za-df-z]*n[A-Za-df-z]*")
_NOT_DRY = re.compile(r"-[a-z]*e|--no-d.*|--e.*|--pathspec.*|--chmod.*")
"""Options of which the next word may be the value, so that it may be no option, and the way back."""


def judge_reading(command: str, words: Sequence[str], env: ShellEnv) -> list[Finding]:
    """Judge a subcommand that reads; nothing when this use of it is none."""
    if is_dry_run(command, words):
        return [Finding(Risk.READ, "git-read", f"git {command} only says what it would do")]
    if command not in GIT_READERS:
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


def is_dry_run(command: str, words: Sequence[str]) -> bool:
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
