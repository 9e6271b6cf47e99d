"""A workspace of several folders: each belongs to it, and none is trusted because another is."""

from typing import Any

import pytest

from tests.policy.views import HOME, ROOT, MemoryView, context
from treadle.policy.classify import classify_command, only_reads
from treadle.policy.decide import decide
from treadle.policy.findings import PathOp
from treadle.policy.path_check import Where, check_path
from treadle.policy.rulefile import RuleFile, load_rules
from treadle.policy.rules import Scope
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import Access, ReadPath, Risk, RunCommand, ToolSpec, ToolTraits, WritePath

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.DENY
SHELL = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)
OTHER = f"{HOME}/other"
_FOLDERS = [f"{root}{below}" for root in (ROOT, OTHER) for below in ("", "/.git", "/.git/objects", "/.git/refs")]
_HEADS = {f"{root}/.git/HEAD": "ref: refs/heads/main\n" for root in (ROOT, OTHER)}
FILES = MemoryView({**dict.fromkeys(_FOLDERS), **_HEADS}, {f"{ROOT}/link": OTHER})


def _judge(access: Access, mode: Mode = Mode.ASK, *, untrusted: bool = True, **changes: Any) -> Verdict:
    around = {"roots": (ROOT, OTHER), "untrusted": (OTHER,) if untrusted else (), "files": FILES, **changes}
    return decide(SHELL, {}, (access,), context(mode, **around)).verdict


def _run(line: str, mode: Mode = Mode.ASK, **changes: Any) -> Verdict:
    return _judge(RunCommand(command=line, cwd=ROOT), mode, **changes)


def _rules(text: str, scope: Scope = Scope.USER) -> Any:
    loaded = load_rules([RuleFile(name="r", text=f"version = 1\n{text}", scope=scope)])
    assert loaded.problems == ()
    return loaded


@pytest.mark.parametrize(
    ("path", "op", "where"),
    [
        (f"{OTHER}/a.py", PathOp.WRITE, Where.INSIDE),
        ("../other/a.py", PathOp.WRITE, Where.INSIDE),
        (f"{OTHER}/AGENTS.md", PathOp.WRITE, Where.PROTECTED),
        (f"{OTHER}/.env", PathOp.READ, Where.PROTECTED),
        (f"{HOME}/others/a.py", PathOp.WRITE, Where.OUTSIDE),
        (f"{OTHER}/../third/a.py", PathOp.WRITE, Where.OUTSIDE),
    ],
)
def test_a_further_folder_is_inside_and_protected_like_the_first(path: str, op: PathOp, where: Where) -> None:
    assert check_path(path, op, ROOT, context(roots=(ROOT, OTHER))).where is where


def test_edits_run_unasked_in_every_folder_of_the_workspace_and_in_no_other() -> None:
    assert _judge(WritePath(path=f"{OTHER}/a.py"), Mode.EDITS) is ALLOW
    assert _judge(ReadPath(path=f"{OTHER}/a.py")) is ALLOW
    assert _judge(WritePath(path=f"{HOME}/third/a.py"), Mode.EDITS) is ASK


@pytest.mark.parametrize(
    "line",
    [
        f"git -C {OTHER} status",
        "git -C ../other status",
        f"cd {OTHER} && git status",
        "cd link && git status",
        f"cd {OTHER} && cargo --version",
    ],
)
def test_git_and_toolchains_ask_in_a_further_folder_that_is_not_trusted(line: str) -> None:
    assert (_run(line), _run(line, untrusted=False)) == (ASK, ALLOW)


def test_the_trusted_workspace_itself_stays_trusted() -> None:
    assert _run("git status") is ALLOW
    assert _run("git -C sub status") is ALLOW


def test_git_asks_in_every_mode_where_an_untrusted_folder_names_programs() -> None:
    acting = MemoryView({**FILES.files, f"{OTHER}/.git/config": "[core]\n\tfsmonitor = x\n"})
    line = f"cd {OTHER} && git commit -m x"
    assert _run(line, Mode.FULL, files=acting) is ASK
    assert _run(line, Mode.FULL, files=FILES) is ALLOW


TESTS = '[[rule]]\nid="t"\nverdict="allow"\nargv=["npm","test"]\nmatch=["npm test"]\n'


def test_no_rule_lets_the_code_of_an_untrusted_folder_run() -> None:
    line = f"cd {OTHER} && npm test"
    for rules in (_rules(TESTS), _rules(TESTS, Scope.SESSION), _rules(f'{TESTS}workspace = "{ROOT}"\n')):
        assert (_run("npm test", rules=rules), _run(line, rules=rules)) == (ALLOW, ASK)
        assert _run(line, rules=rules, untrusted=False) is ALLOW


def test_what_was_allowed_for_a_further_folder_does_not_count_in_the_workspace() -> None:
    assert _run("npm test", rules=_rules(f'{TESTS}workspace = "{OTHER}"\n'), untrusted=False) is ASK


WRITES = '[[rule]]\nid="w"\nverdict="allow"\npath="docs/**"\nmatch=["docs/a.md"]\n'


def test_what_a_workspace_allows_by_path_is_about_itself_alone() -> None:
    there = WritePath(path=f"{OTHER}/docs/a.md")
    for rules in (_rules(WRITES, Scope.PROJECT), _rules(f'{WRITES}workspace = "{ROOT}"\n')):
        assert _judge(WritePath(path=f"{ROOT}/docs/a.md"), rules=rules) is ALLOW
        assert _judge(there, rules=rules) is ASK
    assert _judge(there, rules=_rules(WRITES)) is ALLOW
    assert _judge(there, rules=_rules(WRITES.replace("allow", "deny"), Scope.PROJECT)) is DENY


def test_a_line_that_only_reads_in_an_untrusted_folder_is_known_as_one_that_only_reads() -> None:
    around = context(roots=(ROOT, OTHER), untrusted=(OTHER,), files=FILES)
    assert only_reads(f"git -C {OTHER} status", ROOT, around)
    assert not only_reads(f"git -C {OTHER} commit -m x", ROOT, around)


@pytest.mark.parametrize("root", ["/dev/shm/ws", "/proc/ws", "/w/back\\slash", "/w/a\u200bb", "/w/a\nb", ROOT])
def test_the_folder_that_is_worked_in_is_not_outside_however_it_is_called(root: str) -> None:
    around = context(roots=(root,), files=MemoryView({root: None}))
    assert [found.rule for found in classify_command("ls", root, around).every] == ["reader"]
    assert decide(SHELL, {}, (RunCommand(command="ls", cwd=root),), around).verdict is ALLOW


@pytest.mark.parametrize("cwd", ["/dev/shm/link", "/proc/link", "/w/back\\slash", "/w/a\u200bb"])
def test_another_way_to_that_folder_is_judged_by_its_spelling_too(cwd: str) -> None:
    around = context(files=MemoryView({ROOT: None}, {cwd: ROOT}))
    assert [found.rule for found in classify_command("ls", cwd, around).every] == ["outside", "reader"]
