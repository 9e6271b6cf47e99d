"""A copy of a folder is trusted as the folder is, whoever makes it, whatever of the folder it leaves out."""

import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from treadle import Treadle
from treadle.app.compose import Opening
from treadle.app.config.sections import Settings
from treadle.app.history.branching import branch_at_step
from treadle.app.history.live_tools import run_tools_again
from treadle.app.processes.task_copies import ProjectCopy, copy_project
from treadle.app.security.trusting import copied_trust, session_trust, trust_store
from treadle.app.session.children.writing import copies_for, named_copy_trust
from treadle.protocol.permissions import Mode
from treadle.store.trusted_folders import TrustState
from treadle.testing import call, scripted_model

SOURCE = Path(__file__).parents[2] / "src/treadle"
Maker = Callable[[Path], Awaitable[Path]]
"""Makes a copy of a folder; gives where it is."""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    for name in ("TREADLE_TRUST", "TREADLE_MODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository in which nothing acts, with a folder in it."""
    top = (tmp_path / "shop").resolve()
    (top / "inner").mkdir(parents=True)
    (top / "code.py").write_text("print(1)\n")
    (top / "inner" / "code.py").write_text("print(1)\n")
    subprocess.run(("git", "init", "-q", str(top)), check=True)
    return top


async def recorded(folder: Path) -> str:
    """Work in a folder; gives the session."""
    model = scripted_model(
        call("write_to_file", path="new.txt", content="1\n"), call("attempt_completion", result="Done.")
    )
    async with Treadle(folder, model=model, mode="auto") as treadle:
        await treadle.run("Do it.")
        return treadle.session_id


async def replay(folder: Path) -> Path:
    into = folder.parent / "replayed"
    return branch_at_step(await recorded(folder), 2, into).folder


async def tools_again(folder: Path) -> Path:
    into = folder.parent / "again"
    wanted = Opening(workspace=into, settings=Settings(mode=Mode.AUTO), user_present=False)
    await run_tools_again(await recorded(folder), into, lambda: wanted)
    return into


async def named(folder: Path) -> Path:
    return named_copy_trust("fix", session_trust(folder)).workspace


async def of_subagent(folder: Path) -> Path:
    made = await copies_for(["child-1"], session_trust(folder), ())
    copy, _ = made["child-1"]  # type: ignore[misc]
    return copied_trust(session_trust(folder), copy.folder).workspace


async def of_copy(folder: Path) -> Path:
    return await replay(await named(folder))


MAKERS = (replay, tools_again, named, of_subagent, of_copy)


@pytest.mark.parametrize("part", ["", "inner"])
@pytest.mark.parametrize("make", MAKERS)
async def test_code_of_an_untrusted_repository_asks_in_each_copy_of_it(
    make: Maker, part: str, repository: Path
) -> None:
    copy = await make(repository / part)
    trust = session_trust(copy)
    assert (trust.trusted, trust.lets_code_run, trust.asks) == (False, False, True)
    mode, begun = trust.begin(Mode.AUTO, said=False, resumed=True)
    assert (mode, begun.held_back) == (Mode.ASK, Mode.AUTO)
    (copy / "below").mkdir()
    assert not session_trust(copy / "below").lets_code_run


@pytest.mark.parametrize("part", ["", "inner"])
@pytest.mark.parametrize("make", MAKERS)
async def test_a_copy_of_a_trusted_folder_is_trusted_until_something_acts_that_was_not(
    make: Maker, part: str, repository: Path
) -> None:
    folder = repository / part
    (folder / "AGENTS.md").write_text("RULE")
    trust_store().grant(session_trust(folder).trust)
    copy = await make(folder)
    assert session_trust(copy).trusted
    (copy / "CLAUDE.md").write_text("OTHER")
    assert session_trust(copy).trust.state is TrustState.CHANGED
    (copy / "CLAUDE.md").unlink()
    trust_store().revoke(folder)
    assert not session_trust(copy).lets_code_run


@pytest.mark.parametrize("make", MAKERS)
async def test_a_copy_of_a_folder_in_which_nothing_needs_trust_needs_none(make: Maker, tmp_path: Path) -> None:
    folder = (tmp_path / "plain").resolve()
    folder.mkdir()
    (folder / "code.py").write_text("print(1)\n")
    copy = await make(folder)
    assert session_trust(copy).lets_code_run
    assert not session_trust(copy).asks


async def test_what_is_said_of_a_copy_counts_for_it_alone(repository: Path) -> None:
    copy = await replay(repository)
    trust_store().grant(session_trust(copy).trust)
    assert (session_trust(copy).trusted, session_trust(repository).trusted) == (True, False)
    trust_store().grant(session_trust(repository).trust)
    trust_store().revoke(copy)
    assert (session_trust(copy).asks, session_trust(repository).trusted) == (True, True)


async def test_another_folder_in_the_place_of_a_copy_is_not_the_copy(repository: Path) -> None:
    trust_store().grant(session_trust(repository).trust)
    copy = await replay(repository)
    copy.rename(copy.with_name("moved"))
    shutil.copytree(repository, copy)
    assert (session_trust(copy).trusted, session_trust(copy).asks) == (False, True)


def test_a_copy_of_a_batch_is_a_repository_that_nobody_trusted(repository: Path, tmp_path: Path) -> None:
    """One of an empty or plain folder too: what a task writes there asks, unless the batch was started with trust."""
    for number, source in enumerate((str(repository), str(repository / "inner"), "")):
        place = tmp_path / f"copies{number}"
        copy = copy_project(source, "", ProjectCopy(folder=place / "t", base=place / "t.git"), leave_out=place)
        assert not session_trust(copy.folder).lets_code_run


def test_no_other_part_of_the_source_makes_a_whole_copy_of_a_folder() -> None:
    """A new one has its copies noted (`note_copy`), and a row in `MAKERS`."""
    makes = re.compile(r"\b(copytree|copy_tree|copy_folder|make_writer_copy|copy_project)\(|\.extract\(trees")
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if any(makes.search(line) for line in file.read_text().splitlines() if not line.startswith("def "))
    }
    assert found == {
        "app/checkpoints/checkpoint_files.py",  # for `branching.py`
        "app/demo/__init__.py",  # the sample project
        "app/history/branching.py",
        "app/instruction_tests/running_tests.py",  # a fixture of a trusted folder
        "app/processes/task_copies.py",  # each is a repository of its own
        "app/session/children/writing.py",
        "app/subagents/writer_copies.py",  # for `writing.py`
        "headless/batch/batch_steps.py",  # the same as `task_copies.py`
        "workspace/copies/whole_copy.py",
        "workspace/sandbox/moving.py",  # to the quarantine
    }
