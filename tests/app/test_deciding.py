"""To decide acts on nothing: whatever line the model writes, no program starts before there is a verdict."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.app.rehearsal import rehearse, run
from tests.policy.views import CASES
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.engine.ports import Ports
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.tool_call import judge_call
from treadle.protocol.events import CallFinished, CallJudged
from treadle.protocol.permissions import Mode, OptionKind, Standing, Verdict
from treadle.protocol.tools import Outcome, Right, ToolCall
from treadle.workspace.sandbox import probe

LINES = Path(__file__).parents[1] / "policy" / "lines"
SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
STARTS = (
    "subprocess.Popen",
    "os.posix_spawn",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.system",
    "os.spawn",
    "pty.spawn",
)
KEPT = "of the user"


class _Spy:
    """Notes each start of a program by this process: the interpreter itself tells, and cannot be told not to."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[Any, ...]]] = []
        self.listens = False

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.listens and event in STARTS:
            self.seen.append((event, arguments))


@cache
def _spy() -> _Spy:
    spy = _Spy()
    sys.addaudithook(spy.note)
    return spy


@contextmanager
def every_start() -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
    """Note each start of a program meanwhile."""
    spy = _spy()
    spy.seen, spy.listens = [], True
    try:
        yield spy.seen
    finally:
        spy.listens = False


def git(root: Path, *words: str) -> None:
    subprocess.run(("git", *SETTINGS, *words), cwd=root, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which another branch brings other control files, and a file that nothing may touch."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    root = (tmp_path / "ws").resolve()
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("x = 1\n")
    (root / "CLAUDE.md").write_text("one")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-q", "-b", "rules")
    for name, text in {"AGENTS.md": "two", "CLAUDE.md": "two", "src/a.py": "x = 2\n"}.items():
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")
    git(root, "checkout", "-q", "main")
    (root / "kept").write_text(KEPT)
    (tmp_path / "kept").write_text(KEPT)
    return root


@pytest.fixture
async def ports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    """What judges and prepares the calls of a real session in the folder."""
    made: list[Ports] = []

    class Kept(Session):
        async def run(self, ports: Ports) -> None:
            made.append(ports)
            await super().run(ports)

    monkeypatch.setattr("treadle.app.assembly.Session", Kept)
    settings = Settings(model="anthropic-compatible/scripted", base_url="http://127.0.0.1:9", mode=Mode.AUTO)
    opening = Opening(workspace=folder, settings=settings, user_present=True, trust=session_trust(folder, once=True))
    async with await open_session(opening):
        yield made[0]


def _corpus() -> Iterator[str]:
    for file in sorted(LINES.rglob("*.txt")):
        yield from (line for line in file.read_text().splitlines() if line and not line.startswith("## "))
    for name in ("commands.jsonl", "real-lines.jsonl"):
        if (CASES / name).exists():
            yield from (json.loads(row).get("command", "") for row in (CASES / name).read_text().splitlines())


def _injections(kept: Sequence[Path]) -> Iterator[str]:
    """Words that a program which looks could take for its own options, in each place of a line of git, and others."""
    words = [text.format(path) for path in kept for text in ("--output={0}", "-O{0}", "--exec='touch {0}'", "-o{0}")]
    words += ["--no-index", "--upload-pack=touch", "-c", "--", "-", "@{-1}", "HEAD..--output=x", "$(touch kept)"]
    verbs = """
        rebase --onto {} HEAD|rebase {}|rebase HEAD {}|rebase --onto HEAD {}|merge {}|merge -m {} rules|pull {}
        pull origin {}|switch {}|switch -c new {}|switch --detach {}|checkout {}|checkout -b new {}|checkout {} -- src
        reset --hard {}|reset --merge {}|reset --keep {}|cherry-pick {}|cherry-pick HEAD..{}|revert {}|stash pop {}
        stash apply {}|commit -m {}|diff {}|log {}|show {}|rev-parse {}|format-patch {}|archive {}|grep {}|blame {}
    """
    for verb in (verb.strip() for verb in verbs.replace("\n", "|").split("|") if verb.strip()):
        yield from (f"git {verb.replace('{}', word)}" for word in words)
        yield from (f"git {verb.replace('{}', word)}; if then" for word in words[:4])
    yield from (f"{program} {word}" for program in ("-n", "+n", "--rcfile", "bash", "sh -c") for word in words)


@pytest.mark.parametrize("each", [10, pytest.param(2, marks=pytest.mark.soak)])
async def test_nothing_is_started_while_lines_are_judged_and_their_calls_prepared(
    folder: Path, ports: Ports, each: int, record_property: Any
) -> None:
    probe()  # what this system has is measured once, with no word of anybody
    lines = [*_injections((folder / "kept", folder.parent / "kept")), *list(_corpus())[::each]]
    assert len(lines) >= (5_000 if each == 2 else 1_500)
    before = sorted(path.name for path in folder.iterdir())
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdicts: dict[str, int] = {}
    with every_start() as started:
        for number, (line, mode) in enumerate(zip(lines, cycle(Mode), strict=False)):
            call = ToolCall(id=f"c{number}", name="execute_command", arguments={"command": line})
            event, _ = await judge_call(ports, call, Standing(mode=mode))
            assert started == [], line
            match event:
                case CallJudged(decision=decision):
                    verdicts[decision.verdict] = verdicts.get(decision.verdict, 0) + 1
                case CallFinished(result=result):
                    assert result.outcome is Outcome.INVALID, (line, result)
                    verdicts["invalid"] = verdicts.get("invalid", 0) + 1
    assert resource.getrusage(resource.RUSAGE_CHILDREN) == reaped, "nor by anything that the interpreter does not see"
    assert min(verdicts.get(each, 0) for each in (*Verdict, "invalid")) > 50, verdicts
    assert sorted(path.name for path in folder.iterdir()) == before
    assert [path.read_text() for path in (folder / "kept", folder.parent / "kept")] == [KEPT, KEPT]
    record_property("figure", f"deciding: {len(lines):,} lines judged, 0 programs started, {verdicts}")


def test_the_spy_sees_what_is_started() -> None:
    with every_start() as started:
        subprocess.run(("true",), check=True)
        os.system("true")
        assert {event for event, _ in started} >= {"subprocess.Popen", "os.system"}


INJECTED = ("git rebase --onto --output={kept} HEAD", "git switch -c new --output={kept}", "git merge --output={kept}")


@pytest.mark.parametrize("line", INJECTED)
@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE])
async def test_an_option_in_the_place_of_a_revision_changes_no_file(
    line: str, option: OptionKind, folder: Path
) -> None:
    bubblewrap()
    for kept in (folder.parent / "kept", folder.parent / "made"):
        await rehearse(folder, [run(line.format(kept=kept))], mode=Mode.AUTO, present=True, option=option)
    assert (folder.parent / "kept").read_text() == KEPT
    assert not (folder.parent / "made").exists()


async def test_a_line_that_brings_control_files_asks_for_all_of_them_and_then_switches_whole(folder: Path) -> None:
    bubblewrap()
    seen = await rehearse(folder, [run("git switch rules")], mode=Mode.AUTO, present=True)
    denial = seen.asked[-1].denial
    assert denial is not None
    assert (denial.right, denial.target, denial.also) == (Right.WRITE, f"{folder}/AGENTS.md", (f"{folder}/CLAUDE.md",))
    assert "AGENTS.md, CLAUDE.md" in denial.text
    assert seen.results[0].outcome is Outcome.OK
    assert [(folder / name).read_text() for name in ("AGENTS.md", "CLAUDE.md", "src/a.py")] == ["two", "two", "x = 2\n"]
    assert (folder / ".git/HEAD").read_text() == "ref: refs/heads/rules\n"


@pytest.mark.parametrize("present", [True, False])
async def test_a_line_that_brings_control_files_does_nothing_after_a_no(present: bool, folder: Path) -> None:
    bubblewrap()
    lines = [run("git switch rules"), run("git merge rules"), run("git reset --hard rules")]
    seen = await rehearse(folder, lines, mode=Mode.AUTO, present=present, option=OptionKind.REJECT_ONCE)
    assert all(result.outcome is not Outcome.OK for result in seen.results[:3])
    assert not (folder / "AGENTS.md").exists()
    assert [(folder / name).read_text() for name in ("CLAUDE.md", "src/a.py")] == ["one", "x = 1\n"]
    assert (folder / ".git/HEAD").read_text() == "ref: refs/heads/main\n"
