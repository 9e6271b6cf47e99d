"""A subagent is never allowed more than who began it, for no line, mode, agent or allowance."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.policy.views import labelled
from treadle.app.security.confining import NOTHING, Confining
from treadle.app.session.children.child_shape import ChildShape, ParentStanding, narrower, narrower_mode
from treadle.app.session.children.code_mode import ProgramShape
from treadle.app.session.children.fork_shape import fork_shape
from treadle.app.session.children.renaming import as_in_workspace
from treadle.app.session.commands.judging import policy_context
from treadle.app.subagents.writer_record import WriterCopy
from treadle.engine.ports import Judge
from treadle.policy.allowances import decide_and_offer
from treadle.policy.modes import granting
from treadle.protocol.events import OfferChanged
from treadle.protocol.permissions import Decision, Mode, Question, QuestionKind, Standing, Verdict
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import Access, Confinement, Right, Risk, RunCommand, SandboxDenial, ToolSpec, WritePath
from treadle.tools.declarations import EXECUTE_COMMAND, WRITE_TO_FILE

ORDER = (Verdict.ALLOW, Verdict.REQUIRE_USER_CONFIRMATION, Verdict.DENY)
CONFINED = (Confinement.LOOK, Confinement.WORK, Confinement.GIT, Confinement.OPEN)
SAMPLE = 120
"""Every 120th labelled line is the sample of `make test`."""


def judge_in(root: Path, confining: Confining = NOTHING) -> Judge:
    def judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing) -> Decision:
        return decide_and_offer(
            spec, arguments, accesses, policy_context(str(root), standing, trusted=True, confining=confining)
        )

    return judge


def no_wider(child: Decision, parent: Decision) -> bool:
    if ORDER.index(child.verdict) < ORDER.index(parent.verdict):
        return False
    if child.confinement is None or parent.confinement is None:
        return True
    return CONFINED.index(child.confinement) <= CONFINED.index(parent.confinement)


def shape(root: Path, parent: Judge, standing: Standing, copy: WriterCopy | None = None) -> ChildShape:
    words = PromptPart(name="agent", text="")
    above = ParentStanding(parent, lambda: standing)
    if copy is None:
        return ChildShape(root=root, parent=above, words=words, remember=print)
    return ChildShape(root=root, parent=above, words=words, remember=print, as_parent=as_in_workspace(copy))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    home = tmp_path_factory.mktemp("rights")
    (home / "ws").mkdir()
    (home / "copy" / "ws").mkdir(parents=True)
    return home / "ws", home / "copy" / "ws"


def lines(*, whole: bool) -> Iterator[str]:
    cases = labelled("commands.jsonl")
    yield from (case["command"] for case in (cases if whole else cases[::SAMPLE]))


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_no_line_is_judged_wider_than_the_parent_judges_it(folders: tuple[Path, Path], *, whole: bool) -> None:
    root, copied = folders
    copy = WriterCopy(child_id="c", workspace=root, folder=copied, roots=((root, copied),))
    parent, in_copy = judge_in(root), judge_in(copied)
    wider = []
    for line, mode, own in product(lines(whole=whole), Mode, Mode):
        for tainted in (False, True):
            standing = Standing(mode=mode, tainted=tainted)
            above = parent(EXECUTE_COMMAND, {"command": line}, (RunCommand(command=line, cwd=str(root)),), standing)
            for place, judge, of in ((root, parent, None), (copied, in_copy, copy)):
                narrowed = shape(place, parent, standing, of).judged(judge)
                run = (RunCommand(command=line, cwd=str(place)),)
                below = narrowed(EXECUTE_COMMAND, {"command": line}, run, Standing(mode=own))
                if not no_wider(below, above):
                    wider.append((line, mode, own, place.name, below.verdict, above.verdict))
    assert wider == []


@pytest.mark.parametrize("kind", ["fork", "program"])
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_no_line_of_a_fork_or_a_program_is_judged_wider(folders: tuple[Path, Path], kind: str, *, whole: bool) -> None:
    root, _ = folders
    parent = judge_in(root)
    wider = []
    for line, mode, own in product(lines(whole=whole), Mode, Mode):
        standing, run = Standing(mode=mode, tainted=True), (RunCommand(command=line, cwd=str(root)),)
        plain = shape(root, parent, standing)
        fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
        own_shape = ProgramShape(**fields) if kind == "program" else fork_shape(plain, OfferChanged(step=0, system=()))
        above = parent(EXECUTE_COMMAND, {"command": line}, run, standing)
        below = own_shape.judged(parent)(EXECUTE_COMMAND, {"command": line}, run, Standing(mode=own))
        if not no_wider(below, above):
            wider.append((line, mode, own, below.verdict, above.verdict))
    assert wider == []


@pytest.mark.parametrize(("mode", "own"), list(product(Mode, Mode)))
def test_no_file_is_written_that_the_parent_could_not_write(folders: tuple[Path, Path], mode: Mode, own: Mode) -> None:
    root, copied = folders
    copy = WriterCopy(child_id="c", workspace=root, folder=copied, roots=((root, copied),))
    parent, in_copy = judge_in(root), judge_in(copied)
    for name in ("a.py", "AGENTS.md", ".git/hooks/pre-commit", ".treadle/config.toml", ".env", "../x", "/etc/passwd"):
        there, here = (str(Path(place, name)) for place in (root, copied))
        above = parent(WRITE_TO_FILE, {}, (WritePath(path=there),), Standing(mode=mode))
        narrowed = shape(copied, parent, Standing(mode=mode), copy).judged(in_copy)
        below = narrowed(WRITE_TO_FILE, {}, (WritePath(path=here),), Standing(mode=own))
        assert no_wider(below, above), (name, below, above)


@pytest.mark.parametrize("name", ["CLAUDE.md", ".vscode/tasks.json", "new/.envrc"])
def test_a_yes_gives_what_the_parent_would_be_given_in_the_copy(folders: tuple[Path, Path], name: str) -> None:
    root, copied = folders
    copy = WriterCopy(child_id="c", workspace=root, folder=copied, roots=((root, copied),))
    confines, asked = Confining(there=True), Standing(mode=Mode.AUTO)
    narrowed = shape(copied, judge_in(root, confines), asked, copy).judged(judge_in(copied, confines))
    below = narrowed(
        EXECUTE_COMMAND, {"command": f"touch {name}"}, (RunCommand(command=f"touch {name}", cwd=str(copied)),), asked
    )
    (right,) = below.grants
    assert below.verdict is Verdict.REQUIRE_USER_CONFIRMATION
    assert (copied / name).is_relative_to(right.target)
    question = Question(id="q", kind=QuestionKind.PERMISSION, text="Run?", options=(), decision=below)
    shown = as_in_workspace(copy).question(question)
    assert [one.target for one in shown.rights] == [right.target.replace(str(copied), str(root))]
    assert str(copied) not in msgspec.json.encode(shown).decode()


def test_a_right_that_the_parent_would_not_be_given_is_neither_given_nor_named() -> None:
    right = SandboxDenial(right=Right.WRITE, target="/x/CLAUDE.md")
    own = Decision(verdict=ORDER[1], risk=Risk.NONE, reasons=granting((right,)), grants=(right,))
    found = narrower(own, Decision(verdict=ORDER[1], risk=Risk.NONE))
    assert (found.grants, found.reasons) == ((), ())


@pytest.mark.parametrize(("one", "other"), list(product(ORDER, ORDER)))
def test_of_two_answers_the_narrower_counts(one: Verdict, other: Verdict) -> None:
    own, above = (Decision(verdict=verdict, risk=Risk.NONE, digest=verdict) for verdict in (one, other))
    found = narrower(own, above)
    assert found.verdict is max(one, other, key=ORDER.index)
    assert found.digest == own.digest


def test_a_wider_mode_of_an_agent_changes_nothing() -> None:
    assert narrower_mode(Mode.ASK, Mode.FULL) is Mode.ASK
    assert narrower_mode(Mode.FULL, Mode.PLAN) is Mode.PLAN
