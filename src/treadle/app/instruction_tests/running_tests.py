"""Running instruction tests: each in a copy of its fixture, with the replies of a model or of a tape."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.compose import Opening, open_session, session_log
from treadle.app.config.layers import load_settings
from treadle.app.instruction_tests.instruction_file import (
    InstructionTest,
    fixture_folder,
    read_instruction_tests,
    tape_name,
)
from treadle.app.instruction_tests.log_expectations import FailedExpectation, failed_expectations, finished_run
from treadle.app.instruction_tests.reply_conditions import changed_conditions, reply_conditions
from treadle.app.instruction_tests.reply_tape import (
    InstructionTape,
    InstructionTapeHead,
    PlayedModel,
    RecordingModel,
    read_instruction_tape,
    write_instruction_tape,
)
from treadle.app.models.model_choice import Models, OwnModel
from treadle.app.security.trusting import SessionTrust, session_trust
from treadle.app.session.known_values import session_redactor
from treadle.app.session.shared.turn_asking import SessionClient
from treadle.present.words import clip_text, counted
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.events import Event, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelSpec
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.store.activation import ActiveFile
from treadle.store.nested_rules import nested_items
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.files.walking import walk

_TEST = Source(kind="headless", id="test")
_CHECK_SECONDS = 300
_MOST_OUTPUT = 2_000
_TAPES = ".tapes"
_HOME = "TREADLE_HOME"
_LIVE = "Record again with: treadle test FILE --live"


class CheckedInstruction(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What came of one test. `recorded`: a model was called. `changed` names what a tape says nothing of any more."""

    name: str
    passed: bool
    recorded: bool
    steps: int = 0
    cost: float | None = 0.0
    session: str = ""
    changed: tuple[str, ...] = ()
    failures: tuple[FailedExpectation, ...] = ()


class _Place(Struct, frozen=True, kw_only=True):
    """Where a test runs: a copy of its fixture, and what was in it: files that act, and the digests of all."""

    folder: Path
    trust: SessionTrust
    files: tuple[ActiveFile, ...]
    before: dict[str, str]


class _Ran(Struct, frozen=True, kw_only=True):
    """A session that has ended."""

    session: str
    events: Sequence[Event]
    outcome: TurnOutcome


async def run_instruction_tests(
    file: Path, trust: SessionTrust, *, live: bool = False, only: str = ""
) -> AsyncIterator[CheckedInstruction]:
    """Run the tests of a file, one after the other; with `live`, and where there is no tape, a model is called.

    `trust` is the user's word on the folder from which it is done: what the file names is run. Raises `ConfigError`
    for a file that cannot be read, and without trust.
    """
    tests = [one for one in read_instruction_tests(file) if not only or one.name == only]
    if not tests:
        raise ConfigError("test-file", f"{file} has no test {only!r}.", fix="Name one as the file does.")
    if not trust.trusted:
        raise ConfigError(
            "test-trust",
            f"The folder {trust.workspace} is not trusted.",
            why="A test runs what its fixture and its checks say: hooks, tools and commands.",
            fix="Look at them, then: treadle trust, or --trust for this run.",
        )
    for one in tests:
        fixture = fixture_folder(file, one)
        tape_file = file.with_suffix(_TAPES) / f"{tape_name(one.name)}.jsonl"
        yield await _run(one, fixture, tape_file, live=live)


async def _run(test: InstructionTest, fixture: Path | None, tape_file: Path, *, live: bool) -> CheckedInstruction:
    try:
        tape = None if live else read_instruction_tape(tape_file)
        with _copied(fixture) as place:
            if tape is None:
                return await _record(test, place, tape_file)
            return await _replay(test, place, tape)
    except TreadleError as error:
        failure = FailedExpectation(what=error.what, why=error.why, fix=error.fix)
        return CheckedInstruction(name=test.name, passed=False, recorded=False, failures=(failure,))


@contextmanager
def _copied(fixture: Path | None) -> Iterator[_Place]:
    with tempfile.TemporaryDirectory(prefix="treadle-test-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary).resolve() / "work"
        if fixture is None:
            folder.mkdir()
        else:
            shutil.copytree(fixture, folder, symlinks=True)
        trust = session_trust(folder, once=True)
        files = (*trust.items, *nested_items(folder))
        yield _Place(folder=folder, trust=trust, files=files, before=_state(folder))


def _state(folder: Path) -> dict[str, str]:
    """Give the digests of all files and links but those of git, by their paths in the folder."""
    found: dict[str, str] = {}
    for top, folders, files in walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*files, *folders):
            path = Path(top, name)
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            elif not path.is_file():
                continue
            else:
                content = path.read_bytes()
            found[path.relative_to(folder).as_posix()] = sha256(content).hexdigest()
    return found


def _changed(place: _Place) -> list[str]:
    after = _state(place.folder)
    return sorted(path for path in {*place.before, *after} if place.before.get(path) != after.get(path))


def _opening(test: InstructionTest, place: _Place, model: OwnModel) -> Opening:
    """Open a session as it is for everybody: with the settings of the fixture, and none of the user's."""
    assert test.mode is not None  # noqa: S101 - the file gives one
    said = {"model": model.spec.ref, "mode": test.mode, "max_steps": test.max_steps}
    flags = {**said, "hooks_from": test.hooks_from} if test.hooks_from else said
    settings = load_settings(flags, Path(os.devnull), workspace=place.folder, trusted=True)
    return Opening(
        workspace=place.folder,
        settings=settings,
        user_present=False,
        given=frozenset(flags),
        trust=place.trust,
        models=(model,),
        only_servers=True,
    )


async def _session(test: InstructionTest, opening: Opening) -> _Ran:
    live = await open_session(opening)
    async with SessionClient(live, _TEST) as client:
        run = await client.ask((Text(text=test.prompt),))
        outcome = await run.wait()
    with session_log(live.id) as (row, store):
        return _Ran(session=live.id, events=tuple(store.read(row.id)), outcome=outcome)


@asynccontextmanager
async def _real_model(test: InstructionTest, place: _Place) -> AsyncIterator[tuple[OwnModel, RecordingModel]]:
    """Find the model of a test as the user has it set up. Raises `ConfigError`."""
    settings = load_settings({"model": test.model} if test.model else {})
    models = Models(settings)
    try:
        await models.ask_server()
        spec: ModelSpec = models.choose().spec
        redactor = session_redactor(str(place.folder), settings)
        recording = RecordingModel(models.provider(spec.ref), place.folder, redactor)
        yield OwnModel(spec=spec, provider=recording), recording
    finally:
        await models.close()


async def _record(test: InstructionTest, place: _Place, tape_file: Path) -> CheckedInstruction:
    """Call the model, keep its replies, and hold what came of it against the test."""
    async with _real_model(test, place) as (model, recording):
        opening = _opening(test, place, model)
        budget = load_settings({}).budget
        caps = [cost for cost in (budget.session_cost, test.max_cost) if cost is not None]
        budget = replace(budget, session_cost=min(caps, default=None))
        ran = await _session(test, replace(opening, settings=replace(opening.settings, budget=budget)))
    if ran.outcome.stop in (TurnStop.ERROR, TurnStop.CANCELLED):
        problem = ran.outcome.error.message if ran.outcome.error is not None else "It was stopped."
        failure = FailedExpectation(what="No tape was recorded.", why=problem, fix="Try again.")
        return _tested(test, ran, (failure,), recorded=True)
    conditions = dict(reply_conditions(test.prompt, place.files, ran.events, str(place.folder)))
    head = InstructionTapeHead(test=test.name, spec=model.spec, depends_on=conditions)
    write_instruction_tape(tape_file, InstructionTape(head=head, replies=tuple(recording.replies)))
    return _tested(test, ran, await _failures(test, place, ran), recorded=True)


async def _replay(test: InstructionTest, place: _Place, tape: InstructionTape) -> CheckedInstruction:
    """Play the replies again; nothing of it is in the user's sessions, and nothing is spent."""
    if test.model and test.model != tape.head.spec.ref:
        return _stale(test, (f"model was {tape.head.spec.ref} and is {test.model}",))
    played = PlayedModel(tape, place.folder)
    with tempfile.TemporaryDirectory(prefix="treadle-test-", ignore_cleanup_errors=True) as home, _at_home(home):
        ran = await _session(test, _opening(test, place, OwnModel(spec=tape.head.spec, provider=played)))
        now = reply_conditions(test.prompt, place.files, ran.events, str(place.folder))
    if changed := changed_conditions(tape.head.depends_on, now):
        return _stale(test, changed)
    if played.missing:
        failure = FailedExpectation(
            what="The session asked the model for more replies than the tape has.",
            why=f"It has {len(tape.replies)}: what the tools or hooks give is not what it was.",
            fix=_LIVE,
        )
        return _tested(test, ran, (failure,), recorded=False)
    return replace(_tested(test, ran, await _failures(test, place, ran), recorded=False), session="")


@contextmanager
def _at_home(folder: str) -> Iterator[None]:
    """Let Treadle keep its things in a folder for a while."""
    before = os.environ.get(_HOME)
    os.environ[_HOME] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HOME]
        else:
            os.environ[_HOME] = before


def _stale(test: InstructionTest, changed: tuple[str, ...]) -> CheckedInstruction:
    failure = FailedExpectation(
        what="The tape does not fit any more.", why=f"Since it was recorded: {'; '.join(changed)}.", fix=_LIVE
    )
    return CheckedInstruction(name=test.name, passed=False, recorded=False, changed=changed, failures=(failure,))


def _tested(
    test: InstructionTest, ran: _Ran, failures: tuple[FailedExpectation, ...], *, recorded: bool
) -> CheckedInstruction:
    return CheckedInstruction(
        name=test.name,
        passed=not failures,
        recorded=recorded,
        steps=ran.outcome.steps,
        cost=ran.outcome.cost,
        session=ran.session,
        failures=failures,
    )


async def _failures(test: InstructionTest, place: _Place, ran: _Ran) -> tuple[FailedExpectation, ...]:
    run = finished_run(ran.events, ran.outcome, _changed(place), str(place.folder))
    found = [*failed_expectations(test.expect, run)]
    if test.expect.check:
        found += await run_check(test.expect.check, place.folder)
    return tuple(found)


async def run_check(line: str, folder: Path) -> tuple[FailedExpectation, ...]:
    """Run the check of a test in its folder, as the user, as they run the tests of a project."""
    with tempfile.TemporaryFile() as output:
        program = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", line),
            cwd=folder,
            env=child_variables(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = await asyncio.wait_for(program.wait(), _CHECK_SECONDS)
        except TimeoutError:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # what it left behind, too
            await program.wait()
        output.seek(max(0, output.tell() - _MOST_OUTPUT))
        said = " ".join(output.read().decode(errors="replace").split())
    if code == 0:
        return ()
    if code is None:
        what, why, fix = "did not end", f"It was stopped after {_CHECK_SECONDS} seconds.", "Check less in it."
    else:
        what, why = f"exited with {code}", clip_text(said, 500) or "It printed nothing."
        fix = "Run it by hand in a copy of the fixture."
    return (FailedExpectation(what=f"The check {line!r} {what}.", why=why, fix=fix),)


def lines_of_tested(one: CheckedInstruction) -> Iterator[str]:
    """Put what came of a test into lines."""
    cost = "at an unknown price" if one.cost is None else f"${one.cost:.4f}"
    how = f"recorded for {cost}" if one.recorded else f"replayed for nothing, recorded for {cost}"
    ran = f" ({counted(one.steps, 'step')}, {how})" if one.steps else ""
    yield f"{'PASS' if one.passed else 'FAIL'} {one.name}{ran}"
    for failure in one.failures:
        yield f"  what: {failure.what}"
        yield f"  why: {failure.why}"
        yield f"  fix: {failure.fix}"
