"""git: what reads, what destroys, and what the repository's own configuration would run."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown
from treadle.policy.operations import PathOp
from treadle.policy.repository import hooks, surprising_settings
from treadle.policy.shell.git_tables import (
    DANGEROUS,
    HARMLESS_KEYS,
    LISTING,
    READING_FORMS,
    SHOWING_KEYS,
    STANDING_ALONE,
    harmful_options,
    reader_table,
)
from treadle.policy.shell.many import judge_whole
from treadle.policy.shell.options import Arguments, Given, Role, read_arguments, read_table
from treadle.policy.shell.outputs import judge_outputs
from treadle.policy.shell.publishing import PUBLISHES
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

_GLOBAL = read_table(
    """
    -pPvh -C: -c: --no-pager --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs
    --no-replace-objects --bare --git-dir! --work-tree! --exec-path! --config-env! --namespace: --attr-source:
    --version --help --icase-pathspecs
"""
)
_CONFIG_READ_FLAGS = frozenset(
    {"--get", "--get-all", "--show-origin", "--show-scope", "--local", "--global", "--type", "--null", "-z"}
)
_NOT_TRUSTED = "the folder is not trusted (`treadle trust`) and has its own settings"
_NAMES_ONLY = frozenset({"check-ignore", "check-attr", "ls-files", "status"})
"""Subcommands that show that a file is there, never what it holds."""

_CREDENTIAL = re.compile(r"token|passw|credential|extraheader", re.IGNORECASE)
_HARDENED = frozenset({"core.pager=cat", "core.pager=", "core.fsmonitor=false", "core.hooksPath=/dev/null"})


def judge_git(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge one git command line."""
    outer = read_arguments(_GLOBAL, words, permute=False)
    findings = _judge_global(outer, scene)
    for place in outer.values("-C"):
        scene = replace(scene, cwds=tuple(posixpath.join(cwd, place) for cwd in scene.cwds))
        scene.trace.places.extend(scene.cwds)
    if any("::" in word and re.match(r"(ext|fd)::", word) for word in words):
        findings.append(dangerous("git-transport", "the address runs a command"))
    if not outer.operands:
        tells = outer.has("--version", "-v", "--help", "-h") and not outer.strange and len(outer.given) == 1
        return [
            *findings,
            Finding(Risk.READ, "version", "git prints its version or help") if tells else unclear("git", "no command"),
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
    findings = [unclear("unknown-option", f"git: {shown(word)!r} is not a known option") for word in outer.strange]
    for option in outer.given:
        if option.role is Role.HARM:
            findings.append(dangerous("git-option", f"git {option.name} uses other programs or another repository"))
        if option.name == "-C" and option.value is not None:
            found = scene.path(option.value, PathOp.LIST)
            findings.extend(found)
            is_known = is_static(option.value) and len(outer.values("-C")) == 1
            there = all(scene.context.trusts(posixpath.join(cwd, option.value)) for cwd in scene.cwds)
            trusted = scene.is_trusted and is_known and there
            if not trusted or any(one.risk is not Risk.READ for one in found):
                asks = not (scene.is_trusted and there)
                elsewhere = "git -C works in another directory"
                findings.append(Finding(Risk.EXECUTE, "git-option", elsewhere, always_asks=asks))
        if option.name in ("-p", "--paginate"):
            findings.append(unclear("git-option", "git starts a pager"))
        if option.name == "-c":
            findings.extend(_judge_setting(option.value or ""))
    return findings


def _judge_setting(setting: str) -> list[Finding]:
    key = setting.partition("=")[0]
    if is_static(setting) and (setting in _HARDENED or SHOWING_KEYS.fullmatch(key)):
        return []
    if is_static(setting) and HARMLESS_KEYS.fullmatch(key):
        return [unclear("git-option", f"git -c {key} overrides a setting")]
    return [dangerous("git-option", f"git -c {key} can make git run something")]


def _judge_git_command(command: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    asks = Finding(Risk.EXECUTE, "git", f"this use of git {command} is not known to be read-only")
    findings = [asks, *judge_outputs(_spelled(words), scene)]
    if command in DANGEROUS:
        findings.append(dangerous("git", f"git {command} {DANGEROUS[command]}"))
    harmful = _harmful_option(command, words)
    if harmful is not None:
        findings.append(dangerous("git-option", f"git {command} {harmful} destroys, leaks or runs something"))
    if command not in _NAMES_ONLY:
        findings.extend(_secret_operands(words, scene))
    reading = _reading(command, words, scene)
    if reading is not None:
        return [*findings[1:], *reading, *_repository(command, scene)]
    special = _SPECIAL.get(command)
    found = special(words, scene) if special is not None else []
    untrusted = [] if any(finding.rule == "untrusted" for finding in found) else _untrusted(scene)
    return [*findings[any(finding.rule == "git-read" for finding in found) :], *found, *untrusted]


def _spelled(words: Sequence[str]) -> list[str]:
    """Write other options that name a directory to write to as outputs."""
    return [re.sub(r"^--(separate-git-dir|directory)\b", "--output", word) for word in words]


def _harmful_option(command: str, words: Sequence[str]) -> str | None:
    """Find an option that does harm, also abbreviated or in a cluster of short ones."""
    for word in words:
        if word == "--":
            return None
        for option in harmful_options(command):
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


def _reading(command: str, words: Sequence[str], scene: Scene) -> list[Finding] | None:
    """Judge a subcommand that reads; None when this use of it is none."""
    for form in READING_FORMS.get(command, ()):
        if tuple(words[: len(form)]) == form and (len(words) == len(form) or form not in STANDING_ALONE):
            shows = Finding(Risk.READ, "git-read", f"git {command} only shows")
            if (command, form) == ("stash", ("list",)):
                return [shows, *(_by_table("stash-list", words[1:], scene) or [])]
            return [shows, *_plain_rest(words[len(form) :])]
    return _by_table(command, words, scene)


def _by_table(command: str, words: Sequence[str], scene: Scene) -> list[Finding] | None:
    table = reader_table(command)
    if table is None:
        return None
    arguments = read_arguments(table, words)
    needed = LISTING.get(command)
    if needed is not None and arguments.operands and not arguments.has(*needed.split()):
        return None
    findings = [Finding(Risk.READ, "git-read", f"git {command} only reads")]
    findings.extend(
        unclear("unknown-option", f"git {command}: {shown(word)!r} is not known to be harmless")
        for word in arguments.strange
    )
    for option in arguments.given:
        findings.extend(_git_option(command, option, scene))
    for operand in arguments.operands:
        findings.extend(_git_operand(operand, scene, is_path="--no-index" in words))
    if arguments.has("--batch", "--batch-check"):
        findings.append(unclear("git", "the objects are named by the input"))
    return findings


def _plain_rest(words: Sequence[str]) -> list[Finding]:
    plain = re.compile(r"-p|-u|--stat|--patch|--name-only|--porcelain|-z|stash@\{\d+\}|\d+|[A-Za-z][\w./-]*")
    return [
        unclear("unknown-option", f"git: {shown(word)!r} is not known to be harmless")
        for word in words
        if not plain.fullmatch(word)
    ]


def _git_option(command: str, option: Given, scene: Scene) -> list[Finding]:
    name, value = option.name, option.value
    if option.role is Role.HARM:
        return [dangerous("git-option", f"git {command} {name} runs a program")]
    if value is None:
        return []
    if option.role is Role.WRITE:
        return scene.path(value, PathOp.WRITE)
    if option.role is Role.READ:
        return scene.path(value, PathOp.READ)
    if name == "--submodule" and value not in ("log", "short"):
        return [unclear("git-option", "git compares files of other repositories, following their settings")]
    checks = "%G" in value or "signature" in value or not is_static(value)
    if name in ("--format", "--pretty") and checks:
        return [unclear("git-option", "the format checks signatures with another program")]
    return []


def _git_operand(operand: str, scene: Scene, *, is_path: bool) -> list[Finding]:
    if is_path or operand.startswith(("/", "../")) or operand == "..":
        return scene.path(operand, PathOp.READ)
    if UNKNOWN in operand:
        return [unclear("unknown-operand", "the revision or path is unknown until it runs")]
    return []


def _repository(command: str, scene: Scene) -> list[Finding]:
    """Ask before git reads where the folder's own settings would make it run something.

    In a folder that is not trusted it is asked at any rate where nothing confines it; confined it runs hardened.
    """
    if command == "version":
        return []
    if not scene.is_trusted:
        hardened = [] if scene.context.confined else [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED} for git")]
        return _untrusted(scene) or hardened
    return [
        Finding(Risk.EXECUTE, "git-settings", f"the repository sets {setting}")
        for cwd in scene.cwds
        for setting in surprising_settings(cwd, scene.context.files)
    ]


def _untrusted(scene: Scene) -> list[Finding]:
    """Ask in every mode before git runs where a folder that is not trusted names programs for it."""
    if scene.is_trusted:
        return []
    files = scene.context.files
    settings = [f"the setting {name}" for cwd in scene.cwds for name in surprising_settings(cwd, files)]
    named = [*settings, *(f"the hook {name}" for cwd in scene.cwds for name in hooks(cwd, files))]
    return [Finding(Risk.EXECUTE, "untrusted", f"{_NOT_TRUSTED}: {named[0]}", always_asks=True)] if named else []


def _clean(words: Sequence[str], _scene: Scene) -> list[Finding]:
    if any(re.fullmatch(r"-\w*n\w*|--dry-run", word) for word in words):
        return []
    return [dangerous("git", "git clean deletes untracked files")]


def _checkout(words: Sequence[str], scene: Scene) -> list[Finding]:
    paths = "--" in words or any(word == "." or word.startswith(("./", ":", "--pathspec-from")) for word in words)
    plain = [word for word in words if not word.startswith("-")]
    makes = not {"-b", "--orphan", "-t"}.isdisjoint(words)
    if paths or (not makes and (len(plain) > 1 or any(_is_there(word, scene) for word in plain))):
        return [dangerous("git", "git checkout of paths discards uncommitted changes")]
    return []


def _is_there(word: str, scene: Scene) -> bool:
    """Whether a word names files that are there; a pattern may always do."""
    if is_glob(word) or "*" in word:
        return True
    files, known = scene.context.files, [cwd for cwd in scene.cwds if cwd != UNKNOWN]
    return is_static(word) and any(files.facts(posixpath.join(cwd, word)) is not None for cwd in known)


def _restore(words: Sequence[str], _scene: Scene) -> list[Finding]:
    staged = any(word in ("--staged", "-S") for word in words)
    if staged and not any(word in ("--worktree", "-W", "-SW", "-WS") for word in words):
        return []
    return [dangerous("git", "git restore discards uncommitted changes")]


def _push(words: Sequence[str], _scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, PUBLISHES, "git push publishes commits")]
    if any("://" in word or re.match(r"[\w.-]+@[\w.-]+:|[/~.]", word) for word in words):
        findings.append(dangerous("git", "git push publishes to an address that is not a remote of the repository"))
    if any(word.startswith(("+", ":")) for word in words) or any(not is_static(word) for word in words):
        findings.append(dangerous("git", "git push rewrites or deletes what is published"))
    return findings


def _push_part(words: Sequence[str], scene: Scene) -> list[Finding]:
    return _push(words[1:], scene) if words[:1] and words[0] == "push" else []


def _over_network(words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.REMOTE, "network", "git connects to another repository")]
    for word in words:
        if word.startswith(("/", "~", "../", "file:")):
            findings.extend(scene.path(word, PathOp.READ))
    return findings


def _clone(words: Sequence[str], scene: Scene) -> list[Finding]:
    plain = [word for word in words if not word.startswith("-")]
    made = [found for place in plain[1:][-1:] for found in scene.path(place, PathOp.WRITE)]
    critical = [finding for finding in made if finding.risk is Risk.CRITICAL]
    found = _over_network(words, scene)
    return [Finding(Risk.REMOTE, "download", "git clone fetches from the network"), *found, *critical]


def _bundle(words: Sequence[str], scene: Scene) -> list[Finding]:
    plain = [word for word in words[1:] if not word.startswith("-")]
    return scene.path(plain[0], PathOp.WRITE) if words[:1] and words[0] == "create" and plain else []


def _config(words: Sequence[str], scene: Scene) -> list[Finding]:
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    plain = [word for word in words if not word.startswith("-")]
    if plain[:1] == ["edit"]:
        return [dangerous("git-config", "opens the settings in an editor")]
    if any(_CREDENTIAL.search(word) for word in plain) and (flags or len(plain) == 1 or plain[0] == "get"):
        return [dangerous("git-config", "shows stored credentials")]
    if flags & {"-f", "--file", "--blob"}:
        return [dangerous("git-config", "git config works on another file")]
    if flags & {"-l", "--list", "--get-regexp"} or plain[:1] == ["list"]:
        text = "a list of settings may show tokens in headers and addresses; git config --get NAME shows one setting"
        return [unclear("git-config", text)]
    if (
        flags & {"--get", "--get-all"}
        or plain[:1] == ["get"]
        or (len(plain) == 1 and "." in plain[0] and flags <= {"--global", "--local"})
    ):
        return _config_read(flags, plain, scene)
    if flags & {"--global", "--system", "--worktree"}:
        return [dangerous("git-config", "changes the settings of every repository")]
    key = next((word for word in plain if "." in word), "")
    if not HARMLESS_KEYS.fullmatch(key):
        return [dangerous("git-config", f"the setting {key} can make git run something")]
    return []


def _config_read(flags: set[str], plain: Sequence[str], scene: Scene) -> list[Finding]:
    if not flags <= _CONFIG_READ_FLAGS or not all(is_static(word) for word in plain):
        return [unclear("git-config", "git config with something unknown")]
    return [Finding(Risk.READ, "git-read", "git config shows a setting"), *_repository("config", scene)]


def _foreach(words: Sequence[str], scene: Scene) -> list[Finding]:
    rest = list(words)
    while rest[:1] and rest[0].startswith("-"):
        rest.pop(0)
    if rest[:1] == ["foreach"]:
        while rest[1:2] and rest[1] in ("--recursive", "--quiet", "-q", "--"):
            rest.pop(1)
        return scene.script(" ".join(rest[1:]))
    return [Finding(Risk.REMOTE, "network", "git connects to another repository")]


def _symbolic_ref(words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge symbolic-ref: with one name it tells where that leads, with two or with an option it changes it."""
    plain = [word for word in words if word not in ("-q", "--quiet", "--short", "--recurse", "--no-recurse")]
    if len(plain) == 1 and is_static(plain[0]) and not plain[0].startswith("-"):
        return [Finding(Risk.READ, "git-read", "git symbolic-ref shows a ref"), *_repository("symbolic-ref", scene)]
    return [dangerous("git", "git symbolic-ref moves refs")]


def _var(words: Sequence[str], scene: Scene) -> list[Finding]:
    if len(words) == 1 and re.fullmatch(r"GIT_[A-Z_]+", words[0]):
        return [Finding(Risk.READ, "git-read", "git var shows a variable"), *_repository("var", scene)]
    return []


def _bisect(words: Sequence[str], scene: Scene) -> list[Finding]:
    return scene.command(tuple(words[1:])) if list(words[:1]) == ["run"] else []


def _worktree(words: Sequence[str], scene: Scene) -> list[Finding]:
    paths = [word for word in words[1:] if not word.startswith("-")]
    return [finding for path in paths[:1] for finding in scene.path(path, PathOp.WRITE)]


def _change_files(words: Sequence[str], scene: Scene) -> list[Finding]:
    return [found for word in words if not word.startswith("-") for found in scene.path(word, PathOp.WRITE)]


def _remove_files(words: Sequence[str], scene: Scene) -> list[Finding]:
    whole = [] if "--cached" in words else judge_whole("rm", words, scene)
    return [*whole, *_change_files(words, scene)]


_SPECIAL: dict[str, Callable[[Sequence[str], Scene], list[Finding]]] = {
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "push": _push,
    **dict.fromkeys(("lfs", "subtree"), _push_part),
    "mv": _remove_files,
    "rm": _remove_files,
    "worktree": _worktree,
    "config": _config,
    "submodule": _foreach,
    "bisect": _bisect,
    "symbolic-ref": _symbolic_ref,
    "var": _var,
    "clone": _clone,
    "init": _change_files,
    "bundle": _bundle,
    **dict.fromkeys(("fetch", "pull", "ls-remote"), _over_network),
}
