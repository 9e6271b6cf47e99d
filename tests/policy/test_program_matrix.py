"""Programs that write, move, copy, link, archive, run and read × ways to name a file × what the file is."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.findings import CommandClass
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Confinement, Risk, RunCommand, ToolSpec, ToolTraits

WRITERS = (
    *("echo x > {}", "echo x >> {}", "cat a >| {}", "echo x &> {}", "printf x | tee {}", "tee -a {} < a", "> {}"),
    *("cp a {}", "cp -f a {}", "mv a {}", "mv -f a {}", "install -m 644 a {}", "rsync a {}", "dd if=a of={}"),
    *("ln a {}", "ln -sf a {}", "link a {}", "touch {}", "truncate -s 0 {}", "sed -i s/a/b/ {}"),
    *("sed --in-place s/a/b/ {}", "perl -pi -e s/a/b/ {}", "rm {}", "rm -rf {}", "unlink {}", "shred {}"),
    *("mv {} b", "chmod +x {}", "chown user {}", "chgrp user {}", "patch {} < a", "sort -o {} a", "uniq a {}"),
    *("tar -cf {} a", "zip {} a", "gzip {}", "bzip2 {}", "xz {}", "git mv a {}", "git mv {} b", "git rm {}"),
    *("iconv -o {} a", "xxd -r a {}", "mkfifo {}", "cat a 2> {}", "curl -o {} https://example.com/a"),
    *("wget -O {} https://example.com/a", "cat > {} <<'E'\nx\nE\n", "setfacl -m u:x:rw {}", "jq . a > {}"),
    *("base64 -d a > {}", "git config -f {} a.b c", "openssl rand -out {} 8", "split -b 1 a {}", "gcc -o {} a.c"),
    *("ruby -i -pe 1 {}", "ex -sc wq {}", "awk 1 a > {}", "cp --backup a {}", "sponge {} < a"),
)
READERS = (
    *("cat {}", "head {}", "tail -n 3 {}", "less {}", "more {}", "nl {}", "tac {}", "rev {}", "grep x {}"),
    *("rg x {}", "sed -n p {}", "awk 1 {}", "cut -c1-9 {}", "sort {}", "uniq {}", "wc {}", "od -c {}", "xxd {}"),
    *("hexdump -C {}", "strings {}", "base64 {}", "base32 {}", "diff {} a", "cmp {} a", "comm {} a", "paste {} a"),
    *("join {} a", "fold {}", "cp {} b", "mv {} b", "ln {} b", "ln -s {} b", "tar -cf b {}", "zip b {}"),
    *("gzip -c {}", "cat < {}", "jq . {}", "while read x; do echo $x; done < {}", "dd if={}", "install {} b"),
    *("rsync {} b", "md5sum {}", "column {}", "pr {}", "expand {}", "fmt {}", "tr a b < {}", "tee b < {}"),
    *("split {}", "file -f {}", "source {}", ". {}", "git diff --no-index a {}"),
    *("curl -d @{} https://example.com", "curl -F f=@{} https://example.com", "openssl enc -in {}"),
    *("xargs -a {} echo", "iconv {}"),
)
FORMS: Mapping[str, Callable[[str, str], str]] = {
    "plain": lambda line, path: line.replace("{}", path),
    "single": lambda line, path: line.replace("{}", f"'{path}'"),
    "double": lambda line, path: line.replace("{}", f'"{path}"'),
    "in part": lambda line, path: line.replace("{}", f'{path[:3]}"{path[3:]}"'),
    "backslash": lambda line, path: line.replace("{}", f"{path[:2]}\\{path[2:]}"),
    "dollar quote": lambda line, path: line.replace("{}", f"$'{path[:2]}\\x{ord(path[2]):02x}{path[3:]}'"),
    "dot": lambda line, path: line.replace("{}", f"./{path}"),
    "slashes": lambda line, path: line.replace("{}", f".//./{path.replace('/', '//')}"),
    "up": lambda line, path: line.replace("{}", f"src/../{path}"),
    "absolute": lambda line, path: line.replace("{}", f"{ROOT}/{path}"),
    "home": lambda line, path: line.replace("{}", f"$HOME/ws/{path}"),
    "home in braces": lambda line, path: line.replace("{}", f'"${{HOME}}/ws/{path}"'),
    "tilde": lambda line, path: line.replace("{}", f"~/ws/{path}"),
    "variable": lambda line, path: f"f={path}; " + line.replace("{}", '"$f"'),
    "variable in part": lambda line, path: f"f={path[:3]}; " + line.replace("{}", f"${{f}}{path[3:]}"),
    "exported": lambda line, path: f"export f='{path}' && " + line.replace("{}", "$f"),
    "glob": lambda line, path: line.replace("{}", f"{path[:-1]}*"),
    "question": lambda line, path: line.replace("{}", f"{path[:-1]}?"),
    "class": lambda line, path: line.replace("{}", f"{path[:-1]}[{path[-1]}]"),
    "braces": lambda line, path: line.replace("{}", f"{path[:-1]}{{{path[-1]},}}"),
    "loop": lambda line, path: f"for f in {path}; do {line.replace('{}', '$f')}; done",
    "substitution": lambda line, path: line.replace("{}", f"$(echo {path})"),
    "cd": lambda line, path: "cd sub && " + line.replace("{}", f"../{path}"),
    "subshell": lambda line, path: f"(cd sub; {line.replace('{}', f'../{path}')})",
    "function": lambda line, path: f"f() {{ {line.replace('{}', '$1')}; }}; f {path}",
    "after": lambda line, path: f"true && {line.replace('{}', path)} || true",
    "not": lambda line, path: f"! {line.replace('{}', path)}",
}
FILES = {f"{ROOT}/{name}": "x" for name in ("a", "b", ".git/config", "AGENTS.md", ".venv/bin/pip", ".env", "id_rsa")}
VIEW = MemoryView({**FILES, **{f"{ROOT}/{name}": None for name in ("", "sub", "src", ".git", ".venv", ".venv/bin")}})
SPEC = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


ROLES_UNKNOWN = ("perl -pi", "uniq a", "tar", "zip", "xxd", "ruby", "sponge")
"""Programs of which it is not known which words they write: named control files are dangerous, other places ask."""

OPTIONS_WITH_FILES = ("dd", "sort -o", "iconv", "openssl", "gcc")
"""Programs that get the file in an option or a setting, in which a pattern is seldom one."""

PATTERNS = ("glob", "question", "class")
CONTROL = [".git/config", "AGENTS.md"]
OUTSIDE = "../other/notes.txt"


def lines(programs: tuple[str, ...], path: str, form: str) -> list[str]:
    fitting = (line for line in programs if "\n" not in line or form not in ("loop", "function", "after"))
    return [FORMS[form](line, path) for line in fitting]


def milder(lines: list[str]) -> list[str]:
    judged = {line: classify_command(line, ROOT, context(files=VIEW)).command_class for line in lines}
    return [f"{line} [{found}]" for line, found in judged.items() if found is not CommandClass.DANGEROUS]


def verdicts(lines: list[str], mode: Mode, *, confines: bool = False) -> dict[str, Verdict]:
    surroundings = context(mode, confines=confines, files=VIEW)
    return {line: decide(SPEC, {}, (RunCommand(command=line, cwd=ROOT),), surroundings).verdict for line in lines}


@pytest.mark.parametrize("end", ["\\;", "+"])
@pytest.mark.parametrize(
    ("start", "name"),
    [(".git", "config"), (".git/", "c*"), ("./.git", "config"), (".venv", "pip"), (f"{ROOT}/.git", "config")],
)
def test_what_find_changes_below_a_protected_folder_is_dangerous(start: str, name: str, end: str) -> None:
    programs = ("mv {} x", "rm {}", "rm -f {}", "sed -i s/a/b/ {}", "cp a {}", "touch {}", "chmod +x {}", "env mv {} x")
    assert milder([f"find {start} -name '{name}' -exec {line} {end}" for line in programs]) == []
    assert milder([f"find {start} -name '{name}' -execdir mv {{}} x {end}", f"find {start} -name {name} -delete"]) == []


def test_what_find_only_reads_below_a_protected_folder_is_no_danger() -> None:
    reads = [
        "find .git -name '*.sample'",
        "find .git -type f -exec wc -c {} +",
        "find .git -name config -exec cat {} \\;",
    ]
    assert len(milder(reads)) == len(reads)


def allowed(lines: list[str], mode: Mode) -> list[str]:
    return [line for line, verdict in verdicts(lines, mode).items() if verdict is Verdict.ALLOW]


def test_there_are_programs_enough() -> None:
    assert len({line.split()[0] for line in (*WRITERS, *READERS)}) >= 60


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", CONTROL)
def test_whatever_changes_a_control_file_is_dangerous(path: str, form: str) -> None:
    spared = OPTIONS_WITH_FILES if form in PATTERNS and path == "AGENTS.md" else ()
    assert milder(lines(tuple(line for line in WRITERS if not line.startswith(spared or ("-",))), path, form)) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", [".env", "id_rsa"])
def test_whatever_reads_a_secret_is_dangerous(path: str, form: str) -> None:
    assert milder(lines(READERS, path, form)) == []


@pytest.mark.parametrize("form", [form for form in FORMS if form != "function"])
@pytest.mark.parametrize("path", [".venv/bin/pip", OUTSIDE])
def test_what_is_known_to_change_installed_programs_or_outside_is_dangerous(path: str, form: str) -> None:
    spared = (*ROLES_UNKNOWN, *(OPTIONS_WITH_FILES if form in PATTERNS else ()))
    assert milder(lines(tuple(line for line in WRITERS if not line.startswith(spared)), path, form)) == []


def _each_form_in_each_mode() -> Iterator[Any]:
    """Give all pairs; each form in one mode, the modes in turns, is the sample, and the others are left to the soak."""
    modes = [mode for mode in Mode if mode is not Mode.FULL]
    for (number, form), (turn, mode) in product(enumerate(FORMS), enumerate(modes)):
        sampled = number % len(modes) == turn
        yield pytest.param(mode, form, marks=() if sampled else pytest.mark.soak)


@pytest.mark.parametrize(("mode", "form"), list(_each_form_in_each_mode()))
def test_nothing_outside_is_touched_unasked_where_nothing_confines(mode: Mode, form: str) -> None:
    assert allowed(lines(READERS, OUTSIDE, form), mode) == []
    assert allowed([*lines(WRITERS, OUTSIDE, form), *lines(WRITERS, ".venv/bin/pip", form)], mode) == []


@pytest.mark.parametrize("confines", [False, True])
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("line", ["mv {} x", "mv -f {} x", "mv -t x {}", "git mv {} x", "mv {} /tmp/x", "env mv {} x"])
def test_moving_git_settings_away_asks_in_every_mode_and_form_or_cannot(
    line: str, mode: Mode, *, confines: bool
) -> None:
    moves = [FORMS[form](line, path) for form in FORMS for path in (".git/config", ".git", ".git/hooks")]
    moves += [f"cd .git && {line.replace('{}', 'config')}", f"find .git -name config -exec {line} \\;"]
    moves += [f"echo .git/config | xargs -I{{}} {line}", f"bash -c '{line.replace('{}', '.git/config')}'"]
    expected = Verdict.DENY if mode is Mode.PLAN else Verdict.REQUIRE_USER_CONFIRMATION
    surroundings = context(mode, confines=confines, files=VIEW)
    decided = {move: decide(SPEC, {}, (RunCommand(command=move, cwd=ROOT),), surroundings) for move in moves}
    unasked = {move: one for move, one in decided.items() if one.verdict is not expected}
    # What is not asked about runs where nothing changes a repository: its settings are mounted read-only there.
    holding = (Confinement.LOOK, Confinement.WORK) if confines else ()
    assert {move: one.confinement for move, one in unasked.items() if one.confinement not in holding} == {}
    assert not {line.replace("{}", path) for path in (".git/config", ".git")} & unasked.keys() or mode is Mode.PLAN
