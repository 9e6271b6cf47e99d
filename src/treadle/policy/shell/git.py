"""git: what reads, what destroys, and what the repository's own configuration would run."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.operations import PathOp
from treadle.policy.repository import surprising_settings
from treadle.policy.shell.options import Arguments, Role, Table, read_arguments, read_table
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

_GLOBAL = read_table(
    "-pPvh -C: -c: --no-pager --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs --no-replace-objects"
    " --bare --git-dir! --work-tree! --exec-path! --config-env! --namespace: --attr-source: --version --help --icase-pathspecs"
)
_DIFF = (
    " -0123456789pusabBCDeEfgGhiIlLMnNoPqrRStTvwWXz --ext-diff! --textconv! --output> --stat? --numstat --shortstat --summary"
    " --dirstat? --name-only --name-status --color? --no-color --color-words? --word-diff? --patch --no-patch --raw --oneline"
    " --patch-with-stat --minimal --patience --histogram --diff-algorithm: --ignore-all-space --ignore-space-change"
    " --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --function-context --unified: --inter-hunk-context:"
    " --no-renames --find-renames? --find-copies? --find-copies-harder --diff-filter: --cached --staged --merge-base --check"
    " --full-index --binary --abbrev? --no-prefix --exit-code --quiet --no-ext-diff --no-textconv --text --relative?"
    " --submodule? --pickaxe-regex --pickaxe-all --compact-summary --color-moved? --indent-heuristic --src-prefix: --dst-prefix:"
    " --ita-invisible-in-index --skip-to: --rotate-to:"
)
_LOG = _DIFF + (
    " --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep"
    " --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --first-parent --all"
    " --branches? --tags? --remotes? --glob: --exclude: --format: --pretty? --date: --graph --decorate? --no-decorate"
    " --abbrev-commit --no-abbrev-commit --follow --full-history --reverse --topo-order --date-order --author-date-order"
    " --walk-reflogs --left-right --cherry-pick --cherry-mark --cherry --source --notes? --no-notes --relative-date"
    " --parents --children --simplify-by-decoration --ancestry-path? --count --min-parents: --max-parents: --numbered"
    " --summary --email --group: --boundary --not --left-only --right-only --dense --sparse --encoding: --no-walk? --objects"
    " --name-only --show-pulls --mailmap --use-mailmap --line-prefix: --bisect"
)
_READERS = {
    "status": "-sbvzu? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored? "
    "--ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --column? --no-column --ignore-submodules?",
    "diff": _DIFF + " -U: -S: -G: -O< --no-index",
    "log": _LOG + " -U: -S: -G: -n: -L: -O<",
    "show": _LOG + " -U: -S: -G: -n: -L: -O<",
    "whatchanged": _LOG + " -n:",
    "shortlog": _LOG + " -n -w?",
    "reflog": _LOG + " -n:",
    "rev-list": _LOG + " -n: --disk-usage? --header --timestamp",
    "diff-tree": _DIFF + " --root -m -c --cc --no-commit-id",
    "diff-index": _DIFF,
    "diff-files": _DIFF,
    "range-diff": _DIFF + " --creation-factor: --no-dual-color",
    "rev-parse": "-q --verify --short? --abbrev-ref? --symbolic --symbolic-full-name --show-toplevel --show-prefix --show-cdup "
    "--git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --all "
    "--branches? --tags? --remotes? --revs-only --no-revs --flags --no-flags --sq --not --show-superproject-working-tree "
    "--is-shallow-repository --show-object-format? --quiet --default: --git-path: --path-format: --since: --until:",
    "ls-files": "-cdimoskutvfz -x: -X< --cached --deleted --modified --others --ignored --stage --unmerged --killed "
    "--directory --no-empty-directory --exclude: --exclude-from< --exclude-per-directory: --exclude-standard --error-unmatch "
    "--full-name --abbrev? --debug --eol --deduplicate --recurse-submodules --with-tree: --format:",
    "ls-tree": "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format:",
    "cat-file": "-tsep --textconv! --filters! --batch-all-objects --allow-unknown-type --batch-check? --batch? --buffer",
    "for-each-ref": "--count: --sort: --format: --points-at: --contains? --no-contains? --merged? --no-merged? --color? "
    "--ignore-case --exclude: --omit-empty",
    "show-ref": "-dqs --head --heads --tags --branches --dereference --hash? --verify --quiet --abbrev?",
    "merge-base": "-a --all --octopus --is-ancestor --fork-point --independent",
    "name-rev": "--tags --refs: --exclude: --all --name-only --no-undefined --always",
    "describe": "--all --tags --contains --abbrev? --candidates: --exact-match --debug --long --match: --exclude: --always "
    "--first-parent --dirty? --broken?",
    "blame": "-bcefklnpstw0123456789 -L: -M? -C? -S< --contents< --date: --show-stats --score-debug --show-name --show-number "
    "--porcelain --line-porcelain --incremental --root --reverse: --first-parent --ignore-rev: --ignore-revs-file< "
    "--abbrev: --since: --color-lines --color-by-age --show-email",
    "annotate": "-bcefklnpstw -L:",
    "grep": "-0123456789aEFGhHIilLnoPpqrvVwWcz -A: -B: -C: -e: -f< -m: -O! --open-files-in-pager! --cached --untracked "
    "--no-exclude-standard --exclude-standard --text --ignore-case --word-regexp --invert-match --full-name --extended-regexp "
    "--basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --null "
    "--files-without-match --count --color? --no-color --break --heading --show-function --function-context --max-depth: "
    "--recursive --no-recursive --all-match --and --or --not --quiet --threads: --only-matching --max-count: --textconv!",
    "count-objects": "-vH --verbose --human-readable",
    "check-ignore": "-qvnz --quiet --verbose --non-matching --no-index",
    "check-attr": "-az --all --cached",
    "check-ref-format": "--branch --normalize --allow-onelevel --refspec-pattern",
    "branch": "-avrliq --all --list --show-current --verbose --remotes --contains? --no-contains? --merged? --no-merged? "
    "--points-at: --sort: --format: --column? --color? --no-color --abbrev? --no-abbrev --ignore-case --omit-empty",
    "tag": "-li -n? --list --contains? --no-contains? --merged? --no-merged? --points-at: --sort: --format: --column? "
    "--color? --ignore-case",
    "var": "-l",
    "version": "--build-options",
}
_LISTING = {
    "branch": ("-l", "--list", "-a", "-r", "--all", "--remotes", "--contains", "--no-contains", "--merged", "--no-merged",
               "--points-at"),
    "tag": ("-l", "--list", "-n", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"),
}  # fmt: skip
"""Subcommands that create something when an operand comes without one of these options."""

_SUBCOMMAND_READS = {
    "remote": (("-v",), ("--verbose",), (), ("get-url",)),
    "stash": (("list",), ("show",)),
    "worktree": (("list",),),
    "notes": (("list",), ("show",)),
    "reflog": (("show",), ("exists",)),
    "bisect": (("log",),),
    "bundle": (("list-heads",),),
    "sparse-checkout": (("list",),),
}
_ALONE = ((), ("-v",), ("--verbose",))
"""Forms that read only when nothing follows."""

_DANGEROUS = {
    "filter-branch": "rewrites history",
    "filter-repo": "rewrites history",
    "update-ref": "moves or deletes refs",
    "credential": "shows or changes stored credentials",
    "credential-store": "shows or changes stored credentials",
    "credential-cache": "shows or changes stored credentials",
    "credential-osxkeychain": "shows or changes stored credentials",
    "prune": "deletes objects",
    "daemon": "serves the repository",
    "instaweb": "serves the repository",
    "http-backend": "serves the repository",
    "send-email": "sends data to the network",
    "imap-send": "sends data to the network",
    "replace": "rewrites history",
    "fast-import": "rewrites history",
    "obliterate": "rewrites history",
    "symbolic-ref": "moves refs",
    "upload-pack": "serves the repository",
    "receive-pack": "serves the repository",
    "shell": "runs commands",
    "reset-hard": "discards uncommitted work",
}
_HARMFUL_OPTIONS: dict[str, tuple[str, ...]] = {
    "push": ("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "-d", "--prune",
             "--receive-pack", "--exec", "--no-verify", "--all"),
    "fetch": ("--upload-pack",), "pull": ("--upload-pack", "--force"), "ls-remote": ("--upload-pack", "--exec"),
    "clone": ("-u", "--upload-pack", "-c", "--config", "--template"), "init": ("--template",),
    "reset": ("--hard", "--merge", "--keep"), "checkout": ("-f", "--force", "-B", "--ours", "--theirs"),
    "switch": ("-f", "--force", "-C", "--force-create", "--discard-changes"), "branch": ("-D", "-M", "-C", "-f", "--force"),
    "tag": ("-d", "--delete", "-f", "--force"), "gc": ("--prune", "--aggressive"), "rm": ("-f", "--force"),
    "commit": ("-n", "--no-verify"), "merge": ("--no-verify",), "rebase": ("-x", "--exec", "--no-verify"),
    "difftool": ("-x", "--extcmd"), "mergetool": ("--tool",), "apply": ("--unsafe-paths",), "archive": ("--exec", "--remote"),
    "maintenance": ("start", "register"), "worktree": ("--force", "-f"), "submodule": ("--force", "-f"), "am": ("--exec",),
    "stash": ("drop", "clear"), "reflog": ("expire", "delete", "drop", "write"), "lfs": ("migrate", "prune"), "read-tree": ("--reset", "-u"),
    "checkout-index": ("-f", "-a"), "bundle": ("unbundle",), "remote": ("set-url", "prune"), "svn": ("dcommit",),
    "update-index": ("--assume-unchanged", "--skip-worktree"), "notes": ("prune",), "config": ("-e", "--edit"),
    "log": ("--show-signature",), "show": ("--show-signature",),
}  # fmt: skip
_HARMLESS_KEYS = re.compile(
    r"(user|color|advice|branch|column|pull|init\.defaultbranch|log|status|core\.(quotepath|abbrev|autocrlf|filemode|ignorecase"
    r"|safecrlf|precomposeunicode|eol)|push\.(default|autosetupremote)|fetch\.prune|rerere|merge\.conflictstyle|diff\.(algorithm"
    r"|renames|context|mnemonicprefix|colormoved))(\..*)?",
    re.IGNORECASE,
)


def judge_git(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge one git command line."""
    outer = read_arguments(_GLOBAL, words, permute=False)
    findings = _judge_global(outer, scene)
    if any("::" in word and re.match(r"(ext|fd)::", word) for word in words):
        findings.append(dangerous("git-transport", "the address runs a command"))
    if not outer.operands:
        tells = outer.has("--version", "-v", "--help", "-h") and not outer.strange and len(outer.given) == 1
        return [
            *findings,
            Finding(Risk.READ, "version", "git tells about itself") if tells else unclear("git", "no command"),
        ]
    command, *rest = outer.operands
    if not is_static(command):
        return [*findings, dangerous("unknown-program", "the git command is unknown until it runs")]
    if outer.strange:
        findings.extend(
            found for word in rest for found in _judge_git_command(word, rest, scene) if found.risk is Risk.CRITICAL
        )
    return findings + _judge_git_command(command, rest, scene)


def _judge_global(outer: Arguments, scene: Scene) -> list[Finding]:
    findings = [unclear("unknown-option", f"git: {word!r} is not a known option") for word in outer.strange]
    for option in outer.given:
        if option.role is Role.HARM:
            findings.append(dangerous("git-option", f"git {option.name} uses other programs or another repository"))
        if option.name == "-C" and option.value is not None:
            found = scene.path(option.value, PathOp.LIST)
            findings.extend([*found, unclear("git-option", "git -C works in another directory")])
        if option.name in ("-p", "--paginate"):
            findings.append(unclear("git-option", "git starts a pager"))
        if option.name == "-c":
            findings.append(_judge_setting(option.value or ""))
    return findings


def _judge_setting(setting: str) -> Finding:
    key = setting.partition("=")[0]
    if is_static(setting) and _HARMLESS_KEYS.fullmatch(key):
        return unclear("git-option", f"git -c {key} overrides a setting")
    return dangerous("git-option", f"git -c {key} can make git run something")


def _judge_git_command(command: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "git", f"git {command}")]
    if command in _DANGEROUS:
        findings.append(dangerous("git", f"git {command} {_DANGEROUS[command]}"))
    harmful = _harmful_option(command, words)
    if harmful is not None:
        findings.append(dangerous("git-option", f"git {command} {harmful} destroys, leaks or runs something"))
    findings.extend(_secret_operands(words, scene))
    special = _SPECIAL.get(command)
    if special is not None:
        found = special(words, scene)
        return [*findings[any(finding.rule == "git-read" for finding in found) :], *found]
    reading = _reading(command, words, scene)
    if reading is not None:
        return [*findings[1:], *reading, *_repository(command, scene)]
    return findings


def _harmful_option(command: str, words: Sequence[str]) -> str | None:
    """Find an option that does harm, also abbreviated or in a cluster of short ones."""
    for word in words:
        if word == "--":
            return None
        for option in _HARMFUL_OPTIONS.get(command, ()):
            name = word.partition("=")[0]
            if word == option or (name.startswith("--") and len(name) > 3 and option.startswith(name)):
                return option
            cluster = len(option) == 2 and option[0] == "-" and re.match(r"-[A-Za-z]+", word)
            if cluster and option[1] in word[1:] and not word.startswith(("-m", "-n", "-C", "-F")):
                return option
    return None


def _secret_operands(words: Sequence[str], scene: Scene) -> list[Finding]:
    found = (finding for word in words for finding in scene.mentions(word))
    return [finding for finding in found if finding.rule == "secret-read"]


@lru_cache(maxsize=64)
def _table(command: str) -> Table:
    return read_table(_READERS[command] + " --help")


def _reading(command: str, words: Sequence[str], scene: Scene) -> list[Finding] | None:
    """Judge a subcommand that reads; None when this use of it is none."""
    for form in _SUBCOMMAND_READS.get(command, ()):
        if tuple(words[: len(form)]) == form and (len(words) == len(form) or form not in _ALONE):
            return [Finding(Risk.READ, "git-read", f"git {command} only shows"), *_plain_rest(words[len(form) :])]
    if command not in _READERS:
        return None
    arguments = read_arguments(_table(command), words)
    needed = _LISTING.get(command)
    if needed is not None and arguments.operands and not arguments.has(*needed):
        return None
    findings = [Finding(Risk.READ, "git-read", f"git {command} only reads")]
    findings.extend(unclear("unknown-option", f"git {command}: {word!r} is not known") for word in arguments.strange)
    for option in arguments.given:
        findings.extend(_git_option(command, option.name, option.role, option.value, scene))
    for operand in arguments.operands:
        findings.extend(_git_operand(operand, "--no-index" in words, scene))
    if arguments.has("--batch", "--batch-check"):
        findings.append(unclear("git", "the objects are named by the input"))
    return findings


def _plain_rest(words: Sequence[str]) -> list[Finding]:
    plain = re.compile(r"-p|-u|--stat|--patch|--name-only|--porcelain|-z|stash@\{\d+\}|\d+|[A-Za-z][\w./-]*")
    return [unclear("unknown-option", f"git: {word!r} is not known") for word in words if not plain.fullmatch(word)]


def _git_option(command: str, name: str, role: Role, value: str | None, scene: Scene) -> list[Finding]:
    if role is Role.HARM:
        return [dangerous("git-option", f"git {command} {name} runs a program")]
    if role is Role.WRITE and value is not None:
        return scene.path(value, PathOp.WRITE)
    if role is Role.READ and value is not None:
        return scene.path(value, PathOp.READ)
    if (
        name in ("--format", "--pretty")
        and value is not None
        and ("%G" in value or "signature" in value or not is_static(value))
    ):
        return [unclear("git-option", "the format checks signatures with another program")]
    return []


def _git_operand(operand: str, outside_repository: bool, scene: Scene) -> list[Finding]:
    if outside_repository or operand.startswith(("/", "../")) or operand == "..":
        return scene.path(operand, PathOp.READ)
    if UNKNOWN in operand:
        return [unclear("unknown-operand", "the revision or path is unknown until it runs")]
    return []


def _repository(command: str, scene: Scene) -> list[Finding]:
    """Ask before git runs in a folder that is not trusted, or whose own settings would make git run something."""
    if command == "version":
        return []
    if not scene.context.trusted:
        return [Finding(Risk.EXECUTE, "untrusted", "git runs what the folder's own settings name")]
    return [
        Finding(Risk.EXECUTE, "git-settings", f"the repository sets {setting}")
        for cwd in scene.cwds
        for setting in surprising_settings(cwd, scene.context.files)
    ]


def _clean(words: Sequence[str], _scene: Scene) -> list[Finding]:
    if any(re.fullmatch(r"-\w*n\w*|--dry-run", word) for word in words):
        return []
    return [dangerous("git", "git clean deletes untracked files")]


def _checkout(words: Sequence[str], _scene: Scene) -> list[Finding]:
    paths = "--" in words or any(word == "." or word.startswith(("./", ":/", "*")) for word in words)
    plain = [word for word in words if not word.startswith("-")]
    if paths or (len(plain) > 1 and "-b" not in words and "--orphan" not in words and "-t" not in words):
        return [dangerous("git", "git checkout of paths discards uncommitted changes")]
    return []


def _restore(words: Sequence[str], _scene: Scene) -> list[Finding]:
    staged = any(word in ("--staged", "-S") for word in words)
    if staged and not any(word in ("--worktree", "-W", "-SW", "-WS") for word in words):
        return []
    return [dangerous("git", "git restore discards uncommitted changes")]


def _push(words: Sequence[str], _scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, "network", "git push publishes commits")]
    if any(word.startswith(("+", ":")) for word in words) or any(not is_static(word) for word in words):
        findings.append(dangerous("git", "git push rewrites or deletes what is published"))
    return findings


def _over_network(words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, "network", "git talks to another repository")]
    for word in words:
        if word.startswith(("/", "~", "../")) or word.startswith("file:"):
            findings.extend(scene.path(word, PathOp.READ))
    return findings


def _config(words: Sequence[str], scene: Scene) -> list[Finding]:
    flags = [word for word in words if word.startswith("-")]
    plain = [word for word in words if not word.startswith("-")]
    if any(flag.partition("=")[0] in ("-f", "--file", "--blob") for flag in flags):
        return [dangerous("git-config", "git config works on another file")]
    shows = {"--get", "--get-all", "--get-regexp", "-l", "--list", "--show-origin", "--show-scope", "--name-only", "--local",
             "--global", "--type=bool", "--null", "-z"}  # fmt: skip
    is_read = bool({"--get", "--get-all", "--get-regexp", "-l", "--list"} & set(flags)) or plain[:1] in (
        ["get"],
        ["list"],
    )
    if is_read or (len(plain) == 1 and not set(flags) - {"--global", "--local"}):
        known = all(flag in shows for flag in flags) and all(is_static(word) for word in plain)
        finding = Finding(Risk.READ, "git-read", "git config shows settings")
        return (
            _config_read(finding, plain, scene)
            if known
            else [unclear("git-config", "git config with something unknown")]
        )
    if {"--global", "--system", "--worktree"} & set(flags):
        return [dangerous("git-config", "changes the settings of every repository")]
    key = next((word for word in plain if "." in word), "")
    if not _HARMLESS_KEYS.fullmatch(key):
        return [dangerous("git-config", f"the setting {key} can make git run something")]
    return []


def _config_read(finding: Finding, plain: Sequence[str], scene: Scene) -> list[Finding]:
    if any(re.search(r"token|password|credential|extraheader", word, re.IGNORECASE) for word in plain):
        return [dangerous("git-config", "shows stored credentials")]
    return [finding, *_repository("config", scene)]


def _foreach(words: Sequence[str], scene: Scene) -> list[Finding]:
    rest = [word for word in words if not word.startswith("-")]
    if rest[:1] == ["foreach"]:
        return scene.script(" ".join(rest[1:]))
    return [Finding(Risk.REMOTE, "network", "git talks to another repository")]


def _bisect(words: Sequence[str], scene: Scene) -> list[Finding]:
    return scene.command(tuple(words[1:])) if words[:1] == ("run",) or list(words[:1]) == ["run"] else []


def _worktree(words: Sequence[str], scene: Scene) -> list[Finding]:
    if list(words) == ["list"] or list(words) == ["list", "--porcelain"]:
        return []
    paths = [word for word in words[1:] if not word.startswith("-")]
    return [finding for path in paths[:1] for finding in scene.path(path, PathOp.WRITE)]


_SPECIAL: dict[str, Callable[[Sequence[str], Scene], list[Finding]]] = {
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "push": _push,
    "config": _config,
    "submodule": _foreach,
    "bisect": _bisect,
    **dict.fromkeys(("fetch", "pull", "clone", "ls-remote"), _over_network),
}
