"""What others make of control files stays where the program beside them slept; what it may have made is moved."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.workspace.sandbox.test_made import MADE, begin, is_control, is_empty, is_secret, quarantined

from treadle.workspace.sandbox import recover_made
from treadle.workspace.sandbox.control_stamp import control_stamp
from treadle.workspace.sandbox.program_sleep import ProgramSleep, SleepMark

ASLEEP: SleepMark = frozenset({(1, b"5 0")})
AWAKE: SleepMark = frozenset({(1, b"6 0")})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / ".gitattributes").write_text("before")
    (folder / "CLAUDE.md").symlink_to("README")
    return folder


class Program:
    """A program that is asleep until it is told otherwise."""

    def __init__(self, work: Path) -> None:
        self.mark: SleepMark | None = ASLEEP
        self.run = begin(work, sleep=lambda: self.mark)
        assert self.run.check() == ()


def write(work: Path, name: str, text: str = "of a person") -> None:
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    (work / name).write_text(text)


@pytest.mark.parametrize("name", MADE)
def test_what_others_make_while_it_sleeps_stays_also_when_it_works_later(name: str, work: Path) -> None:
    program = Program(work)
    write(work, name)
    assert program.run.check() == ()
    program.mark = AWAKE
    assert program.run.check() == ()
    program.mark = None
    assert program.run.end() == ()
    assert (work / name).read_text() == "of a person"


@pytest.mark.parametrize("mark", [AWAKE, None])
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_while_it_may_work_is_moved(name: str, mark: SleepMark | None, work: Path) -> None:
    program = Program(work)
    write(work, name)
    program.mark = mark
    (said,) = program.run.check()
    assert "was made while the command ran" in said
    assert quarantined(work) == {name: "of a person"}


@pytest.mark.parametrize("name", MADE)
def test_what_is_brought_back_while_it_sleeps_stays(name: str, work: Path) -> None:
    program = Program(work)
    write(work, name)
    program.mark = AWAKE
    assert len(program.run.check()) == 1
    write(work, name)
    assert program.run.check() == ()
    assert (work / name).exists()


@pytest.mark.parametrize(
    ("made", "changed"),
    [
        ("AGENTS.md", "AGENTS.md"),
        (".github/workflows/x.yml", ".github/workflows/x.yml"),
        (".github/workflows/x.yml", ".github/workflows/evil.yml"),
        ("sub/.git/config", "sub/.git/config"),
        ("sub/.git/HEAD", "sub/.git/hooks/pre-commit"),
    ],
)
def test_what_others_made_is_moved_once_the_program_may_have_changed_it(made: str, changed: str, work: Path) -> None:
    program = Program(work)
    write(work, made)
    assert program.run.check() == ()
    write(work, made, "of a person, who goes on")
    assert program.run.check() == ()
    write(work, changed, "evil")
    program.mark = AWAKE
    (said,) = program.run.check()
    assert "was changed while the command ran" in said
    assert quarantined(work)[changed] == "evil"
    assert not (work / changed).exists()


def test_a_commit_in_a_repository_that_others_made_does_not_move_it(work: Path) -> None:
    program = Program(work)
    write(work, "sub/.git/hooks/pre-commit")
    assert program.run.check() == ()
    write(work, "sub/.git/objects/aa/x")
    write(work, "sub/.git/HEAD")
    program.mark = AWAKE
    assert program.run.check() == ()


def test_a_link_that_a_person_removes_is_not_made_again(work: Path) -> None:
    program = Program(work)
    (work / "CLAUDE.md").unlink()
    assert program.run.check() == ()
    program.mark = AWAKE
    assert program.run.check() == ()
    assert not (work / "CLAUDE.md").is_symlink()


def test_what_could_not_be_moved_is_never_taken_for_somebody_elses(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(work)
    write(work, "AGENTS.md")
    program.mark = AWAKE
    with monkeypatch.context() as patched:
        patched.setattr("treadle.workspace.sandbox.moving.writable_entry", _full)
        assert "cannot be moved" in program.run.check()[0]
    (said,) = program.run.check()
    assert "moved to" in said


def _full(_folder: int, _name: str) -> None:
    raise OSError(28, "No space left on device")


def test_a_folder_that_was_closed_is_looked_into_before_anything_is_left(work: Path) -> None:
    program = Program(work)
    (work / "sub").chmod(0o300)
    said = program.run.check()
    assert not said if os.getuid() == 0 else "can be listed again" in said[0]


KILLED = """
import os, signal
from pathlib import Path
from tests.workspace.sandbox.test_program_sleep import Program, write
work = Path({work!r})
program = Program(work)
write(work, "AGENTS.md")
write(work, "sub/AGENTS.md")
assert program.run.check() == ()
write(work, "sub/AGENTS.md", "evil")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_others_made_stays_after_treadle_was_killed(work: Path) -> None:
    repository = Path(__file__).parents[3]
    done = subprocess.run((sys.executable, "-c", KILLED.format(work=str(work))), cwd=repository, check=False)
    assert done.returncode == -9
    (said,) = recover_made(work.parent / "data", is_control=is_control, is_secret=is_secret, is_inert=is_empty)
    assert said.startswith("sub/AGENTS.md was changed while the command ran.")
    assert (work / "AGENTS.md").read_text() == "of a person"


def test_a_stamp_is_that_of_all_that_a_folder_holds(work: Path) -> None:
    stamps = [control_stamp(str(work))]
    for change in (
        lambda: write(work, "sub/x", "1"),
        lambda: write(work, "sub/x", "2"),
        lambda: (work / "sub/x").chmod(0o700),
        lambda: (work / "sub/y").symlink_to("x"),
        lambda: (work / "sub/x").rename(work / "sub/z"),
    ):
        change()
        stamps.append(control_stamp(str(work)))
    assert len(set(stamps)) == 6
    assert control_stamp(str(work)) == stamps[-1]
    assert control_stamp(str(work / "missing")) == ""


@contextmanager
def running(code: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], SleepMark | None]]]:
    """Run a program below this process, beside others that this one may have."""
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    sleep = ProgramSleep()
    assert sleep.mark() is None, "it has not started"
    words, pipe = (sys.executable, "-c", above), subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as it:
        sleep.begin(it.pid)
        try:
            yield it, sleep.mark
        finally:
            os.killpg(it.pid, signal.SIGKILL)
            it.communicate()
    assert sleep.mark() is None, "it has ended"


READS = """
import sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("up", flush=True)
for line in sys.stdin:
    print(line.strip(), flush=True)
"""


def asleep(mark: Callable[[], SleepMark | None]) -> SleepMark:
    """Wait until a program sleeps."""
    while (found := mark()) is None:
        time.sleep(0.01)
    return found


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux says it")
def test_a_program_that_waits_sleeps_until_it_is_asked_something() -> None:
    with running(READS) as (program, mark):
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "up\n"
        time.sleep(0.2)
        before = asleep(mark)
        assert len(before) == 2
        assert mark() == before
        program.stdin.write("x\n")
        program.stdin.flush()
        assert program.stdout.readline() == "x\n"
        assert asleep(mark) != before


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux says it")
def test_a_program_that_works_does_not_sleep() -> None:
    with running("print('up', flush=True)\nwhile True: pass") as (program, mark):
        assert program.stdout is not None
        assert program.stdout.readline() == "up\n"
        assert [mark() for _ in range(20)] == [None] * 20
