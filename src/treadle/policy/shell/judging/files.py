"""Programs that create, copy, move, link and delete files: every operand is a path that may be changed."""

import posixpath
import re
from collections.abc import Sequence

from treadle.policy.context import FileKind
from treadle.policy.findings import Finding, PathOp, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_static, shown, split_words
from treadle.policy.shell.judging.scene import FREE_TARGETS, Scene
from treadle.protocol.tools import Risk

_REGENERABLE = frozenset(
    split_words("""
    node_modules dist build out target coverage htmlcov __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox
    .next .nuxt .turbo .parcel-cache .cache .gradle .eggs .coverage .hypothesis bower_components tmp temp .tmp
    cmake-build-debug cmake-build-release .import_linter_cache .svelte-kit .angular .vite .output storybook-static
""")
)
"""Directories that tools make again; deleting others recursively may destroy work."""

_PLAIN = re.compile(
    r"-[acdfhilnpqrsuvkLPRHT]+|--(parents|verbose|force|recursive|archive|no-clobber|append|no-create|symbolic|relative)"
)
"""Options that leave it at the files that are named."""

_NAMED = frozenset(split_words("touch mkdir rmdir tee truncate unlink mkfifo cp mv ln link install gzip gunzip xz"))
"""Programs that change the files they are given and no others."""

_FURTHER = frozenset(
    split_words("mktemp split csplit unix2dos dos2unix ex ed bzip2 bunzip2 zstd patch unzip chmod chown chgrp")
)
"""The same, and others besides: what an archive, a patch or their input names, or permissions."""

_RECURSIVE = re.compile(r"-\w*[aRr]\w*|--recursive|--archive")
_REMOVERS = frozenset({"rm", "rimraf", "del-cli"})
_COPIES = frozenset({"cp", "mv", "install", "ln", "link"})
_SCRATCH = re.compile(r"(/private)?/tmp/.")
_NUMERIC_MODE = re.compile(r"[0-7]{3,4}")
_SYMBOLIC_MODE = re.compile(r"([ugoa]*)[+=]([rwxXst]*)")


def is_writer(name: str) -> bool:
    """Whether a program belongs to this family."""
    return name in _REMOVERS or name in _NAMED or name in _FURTHER


def judge_files(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge a program of this family."""
    if name in _REMOVERS:
        return _remove(name, words, scene)
    if name == "tee" and FREE_TARGETS.issuperset(words):
        return [Finding(Risk.READ, "reader", "tee passes its input on")]
    ends = words.index("--") if "--" in words else len(words)
    operands = [word for word in words[:ends] if not word.startswith("-") or word == "-"] + list(words[ends + 1 :])
    findings = [Finding(Risk.WRITE, "writer", f"{name} changes files"), *_options(name, words, scene)]
    if name in _FURTHER:
        findings.append(unclear("unknown-writes", f"{name} changes more than the line says"))
    if name in _COPIES:
        findings.extend(_copy(name, operands, scene))
    for operand in operands:
        found = scene.path(operand, PathOp.WRITE) if name not in _COPIES else []
        scratch = name == "mkdir" and all(_SCRATCH.match(one.path) for one in found)
        findings.extend([unclear("scratch", one.text) for one in found] if scratch else found)
    if name in ("chmod", "chown", "chgrp", "install"):
        findings.extend(_change_mode(name, words))
    if name in ("ed", "ex") and (scene.feed.is_pipe or "!" in (scene.feed.text or "")):
        findings.append(dangerous("piped-script", f"the input of {name} may run commands"))
    return findings


def _options(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge words that are no plain options and no names: which files they stand for is not known."""
    strange = [word for word in words if word[:1] == "-" and word not in ("-", "--") and not _PLAIN.fullmatch(word)]
    strange += [word for word in words if not is_static(word[:1])]
    findings = [found for word in (words if strange else ()) for found in scene.mentions(word)]
    for word in strange:
        text = f"{name}: {shown(word)!r} is not an option known to be harmless, or could be one"
        findings.append(unclear("unknown-option", text))
    if name not in ("touch", "tee") and any(map(_RECURSIVE.fullmatch, words)):
        findings.append(unclear("unknown-writes", f"{name} changes every file below"))
    return findings


def _copy(name: str, operands: Sequence[str], scene: Scene) -> list[Finding]:
    findings: list[Finding] = []
    *sources, target = operands or [""]
    for source in sources or ([target] if name == "ln" else []):
        findings.extend(scene.path(source, PathOp.READ))
        if name in ("mv", "ln", "link"):
            findings.extend(scene.path(source, PathOp.WRITE))
        if name == "mv" and _may_be_folder(source, scene):
            findings.append(unclear("unknown-writes", f"{name} {shown(source)} takes along whatever it holds"))
        # Into a directory, a copy keeps its name: the name counts as a target too.
        kept = scene.path(posixpath.join(target, posixpath.basename(source.rstrip("/"))), PathOp.WRITE)
        findings.extend(found for found in kept if found.rule == "control-write")
    if name in ("ln", "link") and any(found.rule == "read-outside" for found in findings):
        findings.append(dangerous("link-outside", "creates a link in the workspace to something outside it"))
    if name == "mv" and target.startswith("/dev/"):
        findings.append(dangerous("delete-tree", f"moves files away into {target}"))
    return [*findings, *(scene.path(target, PathOp.WRITE) if target else [])]


def _may_be_folder(path: str, scene: Scene) -> bool:
    if not is_static(path) or scene.cwd == UNKNOWN:
        return True
    facts = scene.context.files.facts(posixpath.normpath(posixpath.join(scene.cwd, path)))
    return facts is not None and facts.kind is FileKind.DIRECTORY


def _remove(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.EXECUTE, "delete", f"{name} deletes files")]
    recursive = name != "rm" or any(re.match(r"-\w*[rR]|--r", word) for word in words)
    for operand in words:
        if operand.startswith("-") and "--" not in words:
            continue
        findings.extend(scene.path(operand, PathOp.WRITE))
        if recursive and not _is_regenerable(operand, scene):
            findings.append(dangerous("delete-tree", f"deletes {shown(operand)} and everything below it"))
    return findings


def _is_regenerable(operand: str, scene: Scene) -> bool:
    known = is_static(operand) and scene.cwd != UNKNOWN and ".." not in operand.split("/")
    return known and posixpath.basename(operand.rstrip("/")) in _REGENERABLE


def _change_mode(name: str, words: Sequence[str]) -> list[Finding]:
    if any(re.fullmatch(r"-\w*R\w*|--recurs\w*", word) for word in words):
        return [dangerous("mode", f"{name} changes the permissions of a whole tree")]
    if name in ("chmod", "install") and any(map(_is_dangerous_mode, words[:3])):
        return [dangerous("mode", "gives permissions to everybody, or runs as the owner")]
    return []


def _is_dangerous_mode(text: str) -> bool:
    """Whether a mode lets everybody write, or lets the file run with its owner's rights."""
    if _NUMERIC_MODE.fullmatch(text):
        return bool(int(text[-1]) & 2 or (len(text) == 4 and int(text[0]) & 6))
    clauses = [_SYMBOLIC_MODE.fullmatch(clause) for clause in text.split(",")]
    return any(
        clause and ("s" in clause.group(2) or ("w" in clause.group(2) and set("oa") & set(clause.group(1))))
        for clause in clauses
    )
