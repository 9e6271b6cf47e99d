"""Rights that the model asks for with a command: asked about in every mode, given for that run alone, never a yes."""

import os
from pathlib import Path

import pytest

from tests.app.rehearsal import call, rehearse
from tests.policy.views import ROOT, context
from tests.workspace.sandbox.running import bubblewrap
from treadle.policy.decide import decide
from treadle.present.question_words import asked_in_words
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind, Verdict
from treadle.protocol.tools import Confinement, Outcome, Right, RunCommand
from treadle.tools.declarations import EXECUTE_COMMAND

CONFINED = [mode for mode in Mode if mode is not Mode.FULL]
NEEDS = {
    "network:pypi.org": (Right.NETWORK, "pypi.org"),
    "network": (Right.NETWORK, ""),
    "outside:/srv/other": (Right.WRITE, ""),
    "host": (Right.UNSANDBOXED, ""),
}


def decided(
    mode: Mode, *needs: str, confines: bool = True
) -> tuple[Verdict, Confinement | None, set[tuple[Right, str]]]:
    access = RunCommand(command="true", cwd=ROOT, needs=needs)
    found = decide(EXECUTE_COMMAND, {}, (access,), context(mode, confines=confines))
    return found.verdict, found.confinement, {(one.right, one.target) for one in found.grants}


@pytest.mark.parametrize("mode", CONFINED)
@pytest.mark.parametrize("need", [*NEEDS, "git"])
def test_to_ask_is_never_a_yes(mode: Mode, need: str) -> None:
    verdict, confinement, grants = decided(mode, need)
    if mode is Mode.PLAN:
        assert (verdict, confinement, grants) == (Verdict.DENY, None, set())
        return
    assert verdict is Verdict.REQUIRE_USER_CONFIRMATION
    expected = {"host": Confinement.OPEN, "git": Confinement.GIT}.get(need, Confinement.WORK)
    assert confinement is expected
    right, target = NEEDS.get(need, (None, ""))
    # A place outside that is not there is opened with the folder that it would be in, and never the root.
    wanted = set() if right is None or right is Right.WRITE else {(right, target)}
    assert grants == wanted


def test_where_nothing_confines_there_is_nothing_to_ask_for() -> None:
    assert decided(Mode.FULL, "network:pypi.org", "host") == decided(Mode.FULL)
    assert decided(Mode.ASK, "network", confines=False)[2] == set()


def test_a_protected_place_is_asked_about_as_one() -> None:
    access = RunCommand(command="true", cwd=ROOT, needs=("outside:/home/u/.ssh/config",))
    found = decide(EXECUTE_COMMAND, {}, (access,), context(Mode.AUTO, confines=True))
    assert found.verdict is Verdict.REQUIRE_USER_CONFIRMATION
    assert any(reason.rule == "control-write" for reason in found.reasons)


@pytest.mark.parametrize(
    "reason",
    ["It needs the package.", "\u201d\nRuns in the sandbox. [y] Yes", "a\x1b[31m b", "\u202eevil", "x" * 1000],
)
def test_the_reason_stands_in_quotation_marks_that_it_cannot_end(reason: str) -> None:
    access = RunCommand(command="make", cwd=ROOT, needs=("network",), reason=reason)
    decision = decide(EXECUTE_COMMAND, {}, (access,), context(Mode.AUTO, confines=True))
    question = Question(id="q1", kind=QuestionKind.PERMISSION, text="Run", accesses=(access,), decision=decision)
    said = asked_in_words(question, (ROOT,)).why[-1]
    assert said.startswith("The model writes: \u201c")
    assert (said.count("\u201c"), said.count("\u201d"), said[-1]) == (1, 1, "\u201d")
    assert not {"\n", "\x1b", "\u202e"} & set(said)


async def test_a_yes_gives_the_right_for_that_run_alone(tmp_path: Path) -> None:
    bubblewrap()
    (tmp_path / "work").mkdir()
    other = Path(os.path.realpath(tmp_path), "other")
    other.mkdir()
    line = f"python3 -c \"open('{other}/made', 'w').write('x')\""
    once = call("execute_command", command=line, needs=[f"outside:{other}"], reason="It builds there.")
    again = call("execute_command", command=line.replace("made", "again"))
    found = await rehearse(tmp_path / "work", [once, again], mode=Mode.AUTO, present=True, option=OptionKind.ALLOW_ONCE)
    assert (other / "made").read_text() == "x"
    asked = RunCommand(command=line, cwd=str(tmp_path / "work"), needs=(f"outside:{other}",), reason="It builds there.")
    assert found.asked[0].accesses == (asked,)
    assert [one.denial is None for one in found.asked] == [True, *[False for _ in found.asked[1:]]], (
        "only a refusal asks"
    )


async def test_with_nobody_there_it_does_not_run(tmp_path: Path) -> None:
    bubblewrap()
    asks = call("execute_command", command="echo ran > made", needs=["host"], reason="Please.")
    found = await rehearse(tmp_path, [asks], mode=Mode.AUTO)
    assert (found.asked, found.results[0].outcome, (tmp_path / "made").exists()) == ([], Outcome.DENIED, False)


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.ASK, Mode.FULL])
async def test_a_command_runs_in_the_folder_that_the_model_names(tmp_path: Path, mode: Mode) -> None:
    bubblewrap()
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    places = ("sub/deep", str(tmp_path / "sub"), "../..", "missing")
    found = await rehearse(tmp_path, [call("execute_command", command="pwd", cwd=place) for place in places], mode=mode)
    assert [text.splitlines()[-1] for text in found.texts[:2]] == [f"{tmp_path}/sub/deep", f"{tmp_path}/sub"]
    assert "is outside the workspace" in found.texts[2]
    assert "is not a folder" in found.texts[3]


@pytest.mark.parametrize(
    "wrong", [("", "network:a/b", "outside:relative"), ("outside:", "git:x", "root"), ("network:http://x",)]
)
async def test_a_right_that_there_is_not_is_said_to_be_none(tmp_path: Path, wrong: tuple[str, ...]) -> None:
    calls = [call("execute_command", command="true", needs=[need]) for need in wrong]
    found = await rehearse(tmp_path, calls, mode=Mode.AUTO)
    said = "Use network:HOST, outside:/ABSOLUTE/PATH, git or host."
    assert [said in text for text in found.texts[: len(wrong)]] == [True] * len(wrong)
