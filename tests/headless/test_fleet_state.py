"""What workers share: claims that only the newest holder may use, money of all, and who is taken for dead."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.needed import needs
from treadle.app.processes.session_parts import this_process
from treadle.cli import command_line
from treadle.headless.batch.batch_folder import TaskBegun, TaskRow
from treadle.headless.batch.batch_lines import BatchLines
from treadle.headless.batch.batch_steps import BatchOptions, Said
from treadle.headless.batch.batch_tasks import BatchTask
from treadle.headless.fleet import dbos_engine, fleet_database, fleet_task
from treadle.headless.fleet.artifact_store import FolderStore, artifact_store
from treadle.headless.fleet.dbos_engine import EngineProcess
from treadle.headless.fleet.fleet_database import FleetDatabase, shown_url
from treadle.headless.fleet.fleet_engine import (
    LOOKS,
    LOOKS_AT_GONE,
    EngineGoneError,
    OwnEngine,
    TakenForDeadError,
    id_of,
    task_name,
)
from treadle.headless.fleet.fleet_state import Claim, FencedError, FleetResult, FleetState
from treadle.headless.fleet.fleet_task import FleetPlace, FleetWork
from treadle.headless.fleet.fleet_worker import FleetDispatcher, FleetHome, OpenedEngine
from treadle.protocol.errors import ConfigError

RUN = "batch-1"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[FleetDatabase]:
    one = FleetDatabase(f"sqlite:///{tmp_path}/fleet.db")
    yield one
    one.close()


@pytest.fixture
def state(database: FleetDatabase) -> FleetState:
    one = FleetState(database)
    one.open_run(BatchOptions(run=RUN, run_cost=1.0), "own")
    one.add_tasks(RUN, [BatchTask(id=name, prompt="x") for name in ("a", "b", "c")])
    return one


def taken(state: FleetState, engine: OwnEngine, worker: str) -> Claim:
    name = engine.claim(RUN, 1)
    assert name is not None
    claim = state.hold(RUN, id_of(name), worker)
    assert claim is not None
    return claim


def test_tasks_are_claimed_in_their_order_each_by_one_worker(state: FleetState) -> None:
    engines = [OwnEngine(state.database, worker) for worker in ("w1", "w2")]
    names = [engines[one % 2].claim(RUN, 1) for one in range(4)]
    assert names == [task_name(RUN, "a", 0), task_name(RUN, "b", 0), task_name(RUN, "c", 0), None]
    assert engines[0].claim(RUN, 0) is None


def test_who_has_an_older_claim_changes_nothing_any_more(state: FleetState) -> None:
    engine = OwnEngine(state.database, "w1")
    old = taken(state, engine, "w1")
    state.begin(old, "p1")
    new = state.hold(RUN, "a", "w2")
    assert new is not None
    assert (new.number, new.process) == (old.number + 1, "p1")
    result = FleetResult(row=TaskRow(id="a", state="done"))
    for change in (
        lambda: state.begin(old, "p1"),
        lambda: state.note(old, TaskBegun(digest="d", session="s"), "h"),
        lambda: state.went(old, "run"),
        lambda: state.said(old, "x"),
        lambda: state.rests(old),
        lambda: state.reserve(old, "s", "h", {"step": 0.1}),
        lambda: state.end(old, result),
    ):
        with pytest.raises(FencedError):
            change()
    assert state.counted(RUN) == 0
    state.end(new, result)
    state.end(new, result)  # the answer to the first one may have been lost
    assert [(place, one.row.id) for place, one, _ in state.results(RUN, 0)] == [(1, "a")]
    assert state.hold(RUN, "a", "w3") is None


def test_what_is_read_of_a_task_is_what_was_noted(state: FleetState) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    begun = TaskBegun(digest="d", session="s", tree="t")
    state.note(claim, begun, "home")
    state.said(claim, "one")
    state.said(claim, "two")
    (held,) = state.held_by(RUN, "w1")
    assert (held.begun, held.home, held.number) == (begun, "home", claim.number)
    state.end(claim, FleetResult(row=TaskRow(id="a", state="failed"), patch=b"\xff", check="no"))
    ((_, result, notes),) = state.results(RUN, 0)
    assert (result.patch, result.check, notes) == (b"\xff", "no", "one\ntwo\n")
    state.renew(RUN, claim.task, None)
    assert state.generations(RUN) == {"a": 1, "b": 0, "c": 0}
    assert state.results(RUN, 0) == []


def test_the_sum_of_a_run_is_what_each_session_spent_and_reserved_at_each_home(state: FleetState) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    assert state.reserve(claim, "s", "h1", {"spent": 0.0, "step": 0.25}) == 0.25
    assert state.reserve(claim, "s", "h1", {"spent": 0.1, "step": 0.25}) == pytest.approx(0.35)
    assert state.reserve(claim, "s", "h2", {"spent": 0.0, "step": 0.5}) == pytest.approx(0.85)
    state.settle(RUN, "s", "h2", 0.05)
    assert state.counted(RUN) == pytest.approx(0.4)  # what is reserved at the first home is not known to be free


def test_workers_that_reserve_at_the_same_time_see_each_other(tmp_path: Path, state: FleetState) -> None:
    engine = OwnEngine(state.database, "w")
    claims = [taken(state, engine, "w") for _ in range(3)]
    spent: list[float] = []

    def spend(claim: Claim) -> None:
        mine = FleetState(FleetDatabase(state.database.url))
        used = 0.0
        for _ in range(12):
            if mine.reserve(claim, claim.id, "h", {"spent": used, "step": 0.05}) > 1.0:
                break
            used += 0.05
            spent.append(0.05)
        mine.settle(RUN, claim.id, "h", used)
        mine.database.close()

    threads = [threading.Thread(target=spend, args=(claim,)) for claim in claims]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert 0.9 <= sum(spent) <= 1.0 + 1e-9
    assert state.counted(RUN) == pytest.approx(sum(spent))


def test_a_worker_whose_beats_stop_loses_its_tasks_and_one_that_was_stopped_itself_buries_nobody(
    state: FleetState,
) -> None:
    dead, alive = OwnEngine(state.database, "w1"), OwnEngine(state.database, "w2")
    dead.beat()
    taken(state, dead, "w1")
    alive.beat()  # it saw the other one now; whatever time passes until its next look is one look
    for _ in range(LOOKS - 1):
        alive.beat()
        assert state.held_by(RUN, "w1") != []
    dead.beat()
    for _ in range(LOOKS):
        alive.beat()
        assert state.held_by(RUN, "w1") != []
    alive.beat()
    assert state.held_by(RUN, "w1") == []
    assert alive.claim(RUN, 1) == task_name(RUN, "a", 0)
    with pytest.raises(TakenForDeadError):
        dead.beat()


def test_a_worker_whose_process_has_ended_here_is_not_waited_for_long(state: FleetState) -> None:
    process = subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE)
    here, started = socket.gethostname(), Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    name = f"{here}:{process.pid}:{started}-1"
    quiet, elsewhere = OwnEngine(state.database, name), OwnEngine(state.database, f"other{name}")
    alive = OwnEngine(state.database, this_process())
    for engine in (quiet, elsewhere, alive):
        engine.beat()
    taken(state, quiet, name)
    for _ in range(LOOKS_AT_GONE):
        alive.beat()
        assert state.held_by(RUN, name) != []  # it may only be slow
    process.communicate(b"\n")
    alive.beat()
    assert state.held_by(RUN, name) == []
    workers = state.database.transact(lambda one: one.all("SELECT worker FROM treadle_workers"))
    assert (f"other{name}",) in workers  # of another computer nothing is known but its beats


def test_each_worker_is_watched_whoever_else_ends(state: FleetState) -> None:
    engines = {f"w{one}": OwnEngine(state.database, f"w{one}") for one in range(7)}
    for engine in engines.values():
        engine.beat()
    taken(state, engines["w3"], "w3")
    gone = {"w0", "w1", "w2", "w3", "w4", "w5"}
    for _ in range(LOOKS * 3):
        for name, engine in engines.items():
            if name not in gone:
                engine.beat()
    assert state.held_by(RUN, "w3") == []
    (left,) = state.database.transact(lambda one: one.all("SELECT worker FROM treadle_workers"))
    assert left == ("w6",)


def test_a_worker_that_leaves_gives_back_at_once(state: FleetState) -> None:
    leaving, other = OwnEngine(state.database, "w1"), OwnEngine(state.database, "w2")
    leaving.beat()
    taken(state, leaving, "w1")
    leaving.close()
    assert other.claim(RUN, 1) == task_name(RUN, "a", 0)


def test_a_store_keeps_whole_files_in_order_and_forgets_them(tmp_path: Path) -> None:
    store = artifact_store(str(tmp_path / "store"))
    assert isinstance(store, FolderStore)
    for key in ("r/a/2", "r/a/1", "r/b/1"):
        store.put(key, key.encode())
    store.put("r/a/1", b"new")
    assert (store.list("r/a/"), store.get("r/a/1")) == (["r/a/1", "r/a/2"], b"new")
    for key in (*store.list("r/a/"), "r/a/9"):
        store.delete(key)
    assert (store.list("r/a/"), store.list("r/b/")) == ([], ["r/b/1"])
    with suppress(FileNotFoundError):
        assert list((tmp_path / "store" / "r" / "a").iterdir()) == []


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        FleetDatabase("mysql://x/y")
    assert refused.value.code == "fleet-database"
    with pytest.raises(ConfigError) as refused:
        artifact_store("gs://bucket")
    assert refused.value.code == "fleet-store"


def test_no_password_is_shown() -> None:
    assert shown_url("postgresql://ann:pass@host/db") == "postgresql://ann@host/db"
    assert shown_url("sqlite:////tmp/a.db") == "sqlite:////tmp/a.db"

    assert (
        shown_url("postgresql://host/db?user=ann&password=pa:ss&a=b")
        == "postgresql://host/db?user=ann&password=***&a=b"
    )
    with pytest.raises(ConfigError) as refused:
        FleetDatabase("host=somewhere password='pass' user=ann")
    assert "pass'" not in refused.value.what


@needs("psycopg")
@pytest.mark.parametrize("url", ["postgresql://ann:p%ss@127.0.0.1:1/db", "postgresql://ann@127.0.0.1:1/db?p%ss=1"])
def test_an_address_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        FleetDatabase(url)
    assert refused.value.code == "fleet-database"
    assert "ann:" not in refused.value.what
    assert ("p%ss" in refused.value.why) == ("ann:" not in url)


def test_a_place_where_no_database_can_be_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("This is a text, and no database of SQLite.\n" * 99)
    for place in (text, text / "below" / "a.db", tmp_path):
        with pytest.raises(ConfigError) as refused:
            FleetDatabase(f"sqlite:///{place}")
        assert (refused.value.code, str(place) in refused.value.what) == ("fleet-database", True)


def test_a_new_database_that_another_one_has_open_is_waited_for(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    waits = threading.Timer(0.5, other.execute, ("COMMIT",))
    waits.start()
    FleetDatabase(f"sqlite:///{tmp_path}/new.db").close()
    waits.join()
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()


def test_what_talks_to_postgresql_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError) as refused:
        FleetDatabase("postgresql://localhost/x")
    assert (refused.value.code, "fleet" in refused.value.fix) == ("fleet-missing", True)


@pytest.mark.parametrize(
    "options",
    [BatchOptions(run=RUN, flags={"mode": "full"}), BatchOptions(run=RUN, flags={"mode": "auto"}, trusts=True)],
)
def test_a_task_has_neither_no_sandbox_nor_trust_where_the_worker_does_not_allow_it(
    tmp_path: Path, state: FleetState, options: BatchOptions
) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    place = FleetPlace(url=state.database.url, home="here", folder=tmp_path / "copies")
    said = list[Said]()
    work = FleetWork(place=place, claim=claim)
    assert work(FleetHome(place.folder / RUN, RUN), options, claim.task, said.append) == 0
    assert [one.row and (one.row.state, one.row.kind) for one in said] == [("error", "setup")]


@pytest.mark.parametrize("flags", [{}, {"mode": "auto", "hooks": {}}, {"mode": "auto", "add_dirs": ["/"]}])
def test_a_worker_takes_no_settings_from_a_database_that_no_flag_gives(
    tmp_path: Path, state: FleetState, flags: dict[str, object]
) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    place, said = FleetPlace(url=state.database.url, home="here", folder=tmp_path / "copies"), list[Said]()
    work = FleetWork(place=place, claim=claim)
    assert work(FleetHome(place.folder / RUN, RUN), BatchOptions(run=RUN, flags=flags), claim.task, said.append) == 0
    assert [one.row and (one.row.state, one.row.kind) for one in said] == [("error", "setup")]


def test_a_worker_takes_all_that_the_flags_of_a_batch_give() -> None:
    assert set(command_line._SETTINGS) <= fleet_task._GIVEN


def test_a_file_of_a_task_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "patches").write_text("a file in the place of the folder")
    with pytest.raises(ConfigError) as refused:
        FleetHome(tmp_path, RUN).keep("patches", "a.diff", b"x")
    assert (refused.value.code, "a.diff" in refused.value.what) == ("batch-folder", True)


@pytest.mark.parametrize("mode", [0, 0o755, 0o700])
def test_only_the_user_can_read_the_copies_of_tasks(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "fleet" / RUN
    if mode:  # an older version made it
        home.mkdir(parents=True)
        home.chmod(mode)
    FleetHome(home, RUN)
    assert home.stat().st_mode & 0o777 == 0o700


def test_what_a_task_has_cost_stays_unknown_for_those_who_go_on_with_it(tmp_path: Path, state: FleetState) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    place, home = FleetPlace(url=state.database.url, home="here", folder=tmp_path), FleetHome(tmp_path / RUN, RUN)
    home.note(claim.id, TaskBegun(digest="d", session=f"{RUN}.a", tree="t"))
    share = fleet_task._Share(state, place, claim, home)
    for said in (Said(step="run"), Said(step="run", steps=1, cost=None)):
        fleet_task._say_too(lambda _: None, share, said)
    kept = TaskBegun(digest="d", session=f"{RUN}.a", tree="t", unpriced=True)
    assert (state.begun(RUN)["a"][1], home.begun("a")) == (kept, kept)


def test_a_run_that_was_given_more_money_is_not_closed_by_who_knows_of_the_old_limit(state: FleetState) -> None:
    state.open_run(BatchOptions(run=RUN, run_cost=1.0), "own")
    state.open_run(BatchOptions(run=RUN, run_cost=10.0), "own")
    state.cap(RUN, 1.0)
    assert not state.standing(RUN).capped
    state.cap(RUN, 10.0)
    assert state.standing(RUN).capped


def test_a_task_whose_workers_are_killed_again_and_again_is_given_up_and_told(
    tmp_path: Path, state: FleetState
) -> None:
    for number in range(fleet_task.MOST_WORKER_DEATHS):
        engine = OwnEngine(state.database, f"w{number}")
        engine.beat()
        claim = taken(state, engine, f"w{number}")
        assert state.begin(claim, "elsewhere:1:0-0").deaths == number
        engine._ring.bury([f"w{number}"])
    engine = OwnEngine(state.database, "last")
    claim = taken(state, engine, "last")
    place, said = FleetPlace(url=state.database.url, home="here", folder=tmp_path / "copies"), list[Said]()
    home = FleetHome(place.folder / RUN, RUN)
    work = FleetWork(place=place, claim=claim)
    assert work(home, BatchOptions(run=RUN, flags={"mode": "auto"}), claim.task, said.append) == 0
    (row,) = [one.row for one in said if one.row]
    assert (row.state, row.kind) == ("error", "killed")
    state.end(claim, FleetResult(row=row))
    ((_, _, notes),) = state.results(RUN, 0)
    assert notes == f"a is given up: {fleet_task.MOST_WORKER_DEATHS} workers were killed while they had it.\n"
    state.renew(RUN, claim.task, None)
    again = taken(state, engine, "last")
    assert (again.id, again.deaths) == ("a", 0)


def test_a_process_that_ended_by_itself_is_no_death(state: FleetState) -> None:
    engine = OwnEngine(state.database, "w1")
    claim = taken(state, engine, "w1")
    for _ in range(3):
        assert state.begin(claim, "here:1:0-0").deaths == 0
        state.rests(claim)


def test_what_a_run_spends_and_does_is_seen_wherever_it_is(state: FleetState) -> None:
    claim = taken(state, OwnEngine(state.database, "w1"), "w1")
    state.begin(claim, "elsewhere:1:0-0")
    state.went(claim, "run")
    state.reserve(claim, f"{RUN}.a", "home", {"spent": 0.25, "step": 0.5})
    live = state.live(RUN)
    assert (live.counted, live.unpriced, live.steps) == (0.75, False, {"a": "run"})
    state.note(claim, TaskBegun(digest="d", session=f"{RUN}.a", tree="t", unpriced=True), "home")
    state.rests(claim)
    live = state.live(RUN)
    assert (live.unpriced, live.steps) == (True, {})


@needs("dbos")
def test_the_process_of_an_engine_that_is_killed_is_begun_again_as_long_as_nothing_hangs_on_it(tmp_path: Path) -> None:
    engine = EngineProcess(f"sqlite:///{tmp_path}/fleet.db", "w1", 0)
    descriptor = engine.descriptor
    try:
        os.kill(engine._pid, signal.SIGKILL)
        assert engine.list(RUN) == []
        os.kill(engine._pid, signal.SIGKILL)
        assert engine.list(RUN) == []
        engine.beat()
        os.kill(engine._pid, signal.SIGKILL)
        with pytest.raises(EngineGoneError):
            engine.beat()
        assert engine.descriptor == descriptor
    finally:
        engine.close()


@needs("dbos")
def test_an_engine_whose_processes_end_again_and_again_before_they_answer_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dbos_engine, "_serve_engine", lambda *_: os._exit(1))
    engine = EngineProcess(f"sqlite:///{tmp_path}/fleet.db", "w1", 0)
    with pytest.raises(ConfigError) as failed:
        engine.beat()
    assert (failed.value.code, "3 times" in failed.value.why) == ("fleet-engine", True)
    engine.close()


def test_a_database_that_is_gone_is_waited_for_until_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet_database, "PATIENT", 0.0)
    monkeypatch.setattr(fleet_database, "_BUSY", 0.01)
    database = FleetDatabase(f"sqlite:///{tmp_path}/fleet.db")
    other = sqlite3.connect(tmp_path / "fleet.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigError) as gone:
        database.transact(lambda one: one.one("SELECT 1"))
    assert gone.value.code == fleet_database.DATABASE_GONE
    looks = iter((False, False, False))

    def over() -> bool:
        if next(looks, True):
            other.execute("ROLLBACK")
        return False

    database.over = over
    assert database.transact(lambda one: one.one("SELECT 1")) == (1,)
    assert capsys.readouterr().err.count("It is waited for.") == 1
    other.close()
    database.close()


def test_a_batch_that_cannot_write_hands_its_tasks_back_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: FleetState
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))

    def full() -> None:
        raise ConfigError("batch-folder", "x.diff cannot be written.", why="No space left.", fix="")

    engine = OpenedEngine("own", lambda worker: OwnEngine(state.database, worker))
    place = FleetPlace(url=state.database.url, home="here", folder=tmp_path / "copies")
    dispatcher = FleetDispatcher(state, engine, place, BatchLines(as_json=False), run=RUN, each_round=full)
    dispatcher.work(0)
    assert dispatcher.trouble == "x.diff cannot be written. No space left."
