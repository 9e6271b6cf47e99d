"""Programs that create, copy, move, link and delete files."""

import posixpath
import re
from collections.abc import Callable, Sequence

from treadle.policy.findings import Finding, dangerous, unclear
from treadle.policy.marks import UNKNOWN, is_glob, is_static, shown, split_words
from treadle.policy.operations import PathOp
from treadle.policy.shell.options import Arguments, Table, judge_arguments, read_arguments, read_table
from treadle.policy.shell.scene import FREE_TARGETS, Scene
from treadle.policy.shell.trees import judge_trees
from treadle.protocol.tools import Risk

_REGENERABLE = frozenset(
    split_words("""
    node_modules dist build out target coverage htmlcov __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox
    .next .nuxt .turbo .parcel-cache .cache .gradle .eggs .coverage .hypothesis bower_components tmp temp .tmp
    cmake-build-debug cmake-build-release .import_linter_cache .svelte-kit .angular .vite .output storybook-static
""")
)
"""Directories that tools make again; deleting others recursively may destroy work."""

_WRITERS = {
    "touch": "-acmhf -d: -r< -t: --no-create --date: --reference< --time: | WRITE*",
    "mkdir": "-pv -m: --parents --mode: --verbose | WRITE*",
    "rmdir": "-pv --parents --ignore-fail-on-non-empty --verbose | WRITE*",
    "tee": "-aip --append --ignore-interrupts | WRITE*",
    "truncate": "-co -s: -r< --size: --reference< --no-create | WRITE*",
    "unlink": " | WRITE",
    "unzip": "-nofqujaCLXKB -d> -x: -P: | READ TEXT*",
    "mkfifo": "-m: | WRITE*",
    "mktemp": "-dqut -p> --directory --tmpdir> --suffix: | WRITE*",
    "split": "-dxeu -a: -b: -C: -l: -n: -t: --filter! --numeric-suffixes? --bytes: --lines: | READ WRITE",
    "csplit": "-ksqz -f> -b: -n: --prefix> --digits: --quiet | READ TEXT*",
    "unix2dos": "-kqo --keepdate | WRITE*",
    "dos2unix": "-kqo --keepdate | WRITE*",
    "ex": " | WRITE*",
    "ed": "-s | WRITE",
    "gzip": "-123456789dfkrvqnN -S: --best --fast --keep --force --recursive --decompress | WRITE*",
    "gunzip": "-fkrvq --keep --force | WRITE*",
    "bzip2": "-123456789dfkvqz --keep --force --decompress | WRITE*",
    "bunzip2": "-fkvq --keep --force | WRITE*",
    "xz": "-0123456789dfkvqzeT --keep --force --decompress | WRITE*",
    "zstd": "-0123456789dfkvqT -o> --rm --keep --force --decompress | WRITE*",
    "chmod": "-cfv --changes --silent --quiet --verbose --reference< | TEXT WRITE*",
    "chown": "-cfvh --reference< --no-dereference | TEXT WRITE*",
    "chgrp": "-cfvh --reference< --no-dereference | TEXT WRITE*",
    "patch": """
    -0123456789bcEefIlNnRstTuvZ -B: -d> -D: -F: -g: -i< -o> -p: -r> -V: -Y: -z: --strip: --input< --dry-run
    --reverse --directory> --output> --forward | WRITE READ
""",
}
_OBEYS = {
    **dict.fromkeys(("ed", "ex"), "runs commands from its input"),
    "patch": "changes the files that the patch names",
    "unzip": "writes the files that the archive names",
}
"""Writers for which the line does not say which files are written."""

_COMPRESSORS = frozenset({"gzip", "gunzip", "bzip2", "bunzip2", "xz", "zstd"})
_COPY = read_table(
    """
    -abdfiHlLnNpPRrsTuvxZDcC -t> -S: -g: -m: -o: --archive --backup? --force --interactive --link --dereference
    --no-clobber --no-dereference --preserve? --no-preserve: --parents --recursive --reflink? --symbolic-link
    --target-directory> --no-target-directory --update? --verbose --directory --mode: --owner: --group: --strip
"""
)
_REMOVE = read_table("""
    -fiIrRdvPx --force --interactive? --recursive --dir --verbose --one-file-system --no-preserve-root!
    --preserve-root?
""")
_SCRATCH = re.compile(r"(/private)?/tmp/.")
_NUMERIC_MODE = re.compile(r"[0-7]{3,4}")
_SYMBOLIC_MODE = re.compile(r"([ugoa]*)[+=]([rwxXst]*)")


def judge_files(name: str, words: Sequence[str], scene: Scene) -> list[Finding] | None:
    """Judge a program of this family; None when it is none."""
    judge = _SPECIAL.get(name)
    if judge is not None:
        return judge(name, words, scene)
    options = _WRITERS.get(name)
    if options is None:
        return None
    table = read_table(options)
    findings = [Finding(Risk.WRITE, "writer", f"{name} changes files"), *_judge(name, table, words, scene)]
    if name == "mkdir":
        findings = [unclear("scratch", one.text) if _SCRATCH.match(one.path) else one for one in findings]
    if name in _OBEYS:
        findings.append(unclear("unknown-writes", f"{name} {_OBEYS[name]}"))
    if name in ("ed", "ex") and (scene.feed.is_pipe or "!" in (scene.feed.text or "")):
        findings.append(dangerous("piped-script", f"the input of {name} may run commands"))
    if name in _COMPRESSORS and any(re.fullmatch(r"-\w*r\w*|--recursive", word) for word in words):
        findings.append(unclear("unknown-writes", f"{name} changes every file below"))
    return findings


def is_writer(name: str) -> bool:
    """Whether a program belongs to this family."""
    return name in _SPECIAL or name in _WRITERS


def _judge(name: str, table: Table, words: Sequence[str], scene: Scene) -> list[Finding]:
    return judge_arguments(name, table, read_arguments(table, words), scene)


def _remove(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_REMOVE, words)
    findings = judge_arguments(name, _REMOVE, Arguments(arguments.given, (), arguments.strange), scene)
    findings.append(Finding(Risk.EXECUTE, "delete", f"{name} deletes files"))
    recursive = arguments.has("-r", "-R", "--recursive")
    if arguments.strange and not recursive:
        recursive = any(re.match(r"-\w*[rR]", word) for word in arguments.strange)
    for operand in arguments.operands:
        findings.extend(scene.path(operand, PathOp.WRITE))
        if recursive and not _is_regenerable(operand, scene):
            findings.append(dangerous("delete-tree", f"deletes {shown(operand)} and everything below it"))
        elif _is_everything(operand):
            findings.append(dangerous("delete-all", f"deletes everything that {shown(operand)} matches"))
    if recursive and not arguments.operands:
        findings.append(dangerous("delete-tree", "deletes a tree that is unknown until it runs"))
    return findings


def _is_regenerable(operand: str, scene: Scene) -> bool:
    if not is_static(operand) or scene.cwd == UNKNOWN or ".." in operand.split("/"):
        return False
    return posixpath.basename(operand.rstrip("/")) in _REGENERABLE


def _is_everything(operand: str) -> bool:
    last = posixpath.basename(operand.rstrip("/"))
    return is_glob(operand) and not re.search(r"[A-Za-z0-9]", last)


def _remove_trees(_name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    return _remove("rm", ("-rf", *(word for word in words if not word.startswith("-"))), scene)


def _copy(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    arguments = read_arguments(_COPY, words)
    moves = name == "mv"
    findings = [Finding(Risk.WRITE, "writer", f"{name} changes files")]
    findings.extend(judge_arguments(name, _COPY, Arguments(arguments.given, (), arguments.strange), scene))
    if name == "install" and arguments.has("-d", "--directory"):
        return findings + [found for operand in arguments.operands for found in scene.path(operand, PathOp.WRITE)]
    has_target = arguments.has("-t", "--target-directory")
    sources = arguments.operands if has_target else arguments.operands[:-1]
    for source in sources:
        findings.extend(scene.path(source, PathOp.READ))
        if moves:
            findings.extend(scene.path(source, PathOp.WRITE))
    for target in arguments.operands[len(sources) :]:
        if moves and target.startswith("/dev/"):
            findings.append(dangerous("delete-tree", f"moves files away into {target}"))
        findings.extend(scene.path(target, PathOp.WRITE))
        # Into a directory, a copy keeps its name: the name counts as a target too.
        for source in sources:
            findings.extend(_control_target(posixpath.join(target, posixpath.basename(source.rstrip("/"))), scene))
    if name != "install" and (moves or arguments.has("-r", "-R", "-a", "--recursive", "--archive")):
        findings.extend(judge_trees(sources, scene))
    if name == "install" and any(map(_is_dangerous_mode, arguments.values("-m", "--mode"))):
        findings.append(dangerous("mode", "gives a file dangerous permissions"))
    return findings


def _control_target(path: str, scene: Scene) -> list[Finding]:
    return [finding for finding in scene.path(path, PathOp.WRITE) if finding.rule == "control-write"]


def _link(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    table = read_table("""
    -fnsvribTLP -t> -S: --symbolic --force --no-dereference --verbose --relative --backup? --target-directory>
    --no-target-directory --logical --physical
""")
    arguments = read_arguments(table, words)
    findings = [Finding(Risk.WRITE, "writer", f"{name} creates another name for a file")]
    findings.extend(judge_arguments(name, table, Arguments(arguments.given, (), arguments.strange), scene))
    operands = arguments.operands
    targets = operands if len(operands) == 1 or arguments.has("-t", "--target-directory") else operands[:-1]
    for target in targets:
        found = [*scene.path(target, PathOp.READ), *scene.path(target, PathOp.WRITE)]
        findings.extend(found)
        if any(finding.rule == "read-outside" for finding in found):
            findings.append(dangerous("link-outside", "creates a link in the workspace to something outside it"))
    for link in operands[len(targets) :]:
        findings.extend(scene.path(link, PathOp.WRITE))
    return findings


def _change_mode(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    # `-x` or `-w` is a mode here, not an option.
    plain = [word for word in words if not re.fullmatch(r"-[rwxXst]+", word)]
    taken = len(plain) != len(words)
    table = read_table(_WRITERS[name].replace("TEXT ", "") if taken else _WRITERS[name])
    findings = [Finding(Risk.EXECUTE, "mode", f"{name} changes permissions"), *_judge(name, table, plain, scene)]
    if any(re.fullmatch(r"-\w*R\w*|--recurs\w*", word) for word in words):
        findings.append(dangerous("mode", f"{name} changes the permissions of a whole tree"))
    if name == "chmod" and any(map(_is_dangerous_mode, words[:3])):
        findings.append(dangerous("mode", "gives permissions to everybody, or runs as the owner"))
    return findings


def _is_dangerous_mode(text: str) -> bool:
    """Whether a mode lets everybody write, or lets the file run with its owner's rights."""
    if _NUMERIC_MODE.fullmatch(text):
        return bool(int(text[-1]) & 2 or (len(text) == 4 and int(text[0]) & 6))
    clauses = [_SYMBOLIC_MODE.fullmatch(clause) for clause in text.split(",")]
    return any(
        clause and ("s" in clause.group(2) or ("w" in clause.group(2) and set("oa") & set(clause.group(1))))
        for clause in clauses
    )


def _convert(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    findings = [Finding(Risk.WRITE, "writer", "dd copies bytes")]
    for word in words:
        key, _, value = word.partition("=")
        if key == "if":
            findings.extend(scene.path(value, PathOp.READ) if value != "/dev/zero" else [])
        elif key == "of":
            findings.extend(scene.path(value, PathOp.WRITE))
        elif key not in ("bs", "count", "skip", "seek", "status", "conv", "iflag", "oflag", "ibs", "obs"):
            findings.append(unclear("unknown-option", f"{name}: {word!r} is not understood"))
            findings.extend(scene.mentions(word))
    return findings


def _tee(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge tee: what goes to the output anyway changes nothing."""
    table = read_table(_WRITERS[name])
    arguments = read_arguments(table, words)
    if not arguments.strange and FREE_TARGETS.issuperset(arguments.operands):
        return [Finding(Risk.READ, "reader", "tee passes its input on")]
    return [Finding(Risk.WRITE, "writer", "tee changes files"), *judge_arguments(name, table, arguments, scene)]


def _archive(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Judge tar: listing reads, everything else writes; old-style option letters have no dash."""
    words = list(words)
    if words and not words[0].startswith("-") and re.fullmatch(r"[A-Za-z]+", words[0]):
        words[0] = "-" + words[0]
    findings = [found for word in words for found in scene.mentions(word)]
    letters = "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))
    if "P" in letters or "I" in letters or "F" in letters:
        findings.append(dangerous("dangerous-option", "tar changes the directory or runs a program"))
    table = read_table("""
    -tcxruAdvzjJakpOmhSsUWl -f< -C> -T< -X< --list --verbose --file< --gzip --bzip2 --xz --zstd --wildcards
    --exclude: --directory> --strip-components: --use-compress-program! --to-command! --checkpoint-action!
    --info-script! --new-volume-script! --rsh-command! --rmt-command! --absolute-names! --remove-files!
    --files-from< --exclude-from< --to-stdout | TEXT*
""")
    arguments = read_arguments(table, words)
    lists = arguments.has("-t", "--list") and not re.search(r"[xcruAdU]", letters)
    if "c" in letters or "r" in letters or "u" in letters:
        findings.extend(found for operand in arguments.operands for found in scene.path(operand, PathOp.READ))
    prints = arguments.has("-x") and arguments.has("-O", "--to-stdout") and not re.search(r"[cruAdU]", letters)
    findings.extend(judge_arguments(name, table, arguments, scene))
    if any(":" in value for value in arguments.values("-f", "--file")):
        findings.append(dangerous("dangerous-option", "tar reaches another machine"))
    if not (lists or prints) or arguments.strange:
        findings.append(Finding(Risk.WRITE, "writer", "tar creates or changes files"))
    if not (lists or prints) and "x" in letters + "".join(word for word in words if word in ("--extract", "--get")):
        findings.append(unclear("unknown-writes", "tar writes the files that the archive names"))
    return findings


_SPECIAL: dict[str, Callable[[str, Sequence[str], Scene], list[Finding]]] = {
    "rm": _remove,
    "rimraf": _remove_trees,
    "del-cli": _remove_trees,
    "cp": _copy,
    "mv": _copy,
    "install": _copy,
    "ln": _link,
    "link": _link,
    "chmod": _change_mode,
    "chown": _change_mode,
    "chgrp": _change_mode,
    "dd": _convert,
    "tee": _tee,
    "tar": _archive,
    "bsdtar": _archive,
    "gtar": _archive,
}
