"""The folder of a batch: rows are whole or not there, one batch at a time, and what ended is known by its id."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from treadle.headless.batch import batch_folder
from treadle.headless.batch.batch_folder import (
    PREDICTIONS,
    RESULTS,
    BatchFolder,
    Prediction,
    TaskBegun,
    TaskRow,
    is_meant,
)
from treadle.headless.batch.batch_steps import how_it_went, session_of
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import TurnOutcome, TurnStop

ROWS = [TaskRow(id=f"t{number}", state="done", session=f"s{number}", patch_sha256="0") for number in range(3)]


def nothing() -> None:
    """Nobody waits."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[BatchFolder]:
    made = BatchFolder(tmp_path / "out")
    with made.held(nothing):
        for row in ROWS:
            made.add(row, Prediction(instance_id=row.id, model_name_or_path="p/m", model_patch="é"))
        yield made


def test_rows_are_read_by_id_and_have_the_fields_of_the_contract(folder: BatchFolder) -> None:
    assert list(folder.results().values()) == ROWS
    line = (folder.path / RESULTS).read_bytes().splitlines()[0]
    assert list(msgspec.json.decode(line)) == [
        *("id", "state", "kind", "cost", "tokens", "steps", "seconds", "session", "patch_sha256", "why")
    ]
    assert msgspec.json.decode((folder.path / PREDICTIONS).read_bytes().splitlines()[2]) == {
        "instance_id": "t2",
        "model_name_or_path": "p/m",
        "model_patch": "é",
    }


def test_a_row_that_was_cut_anywhere_is_taken_out_and_the_next_one_is_whole(folder: BatchFolder) -> None:
    file = folder.path / RESULTS
    whole = file.read_bytes()
    begins = whole.rindex(b"\n", 0, -1) + 1
    for end in (begins, begins + 1, begins + 40, len(whole) - 1):
        file.write_bytes(whole[:end])
        assert list(folder.results()) == ["t0", "t1"]
        assert file.read_bytes() == whole[:begins]
        assert [row["instance_id"] for row in map(msgspec.json.decode, lines(folder, PREDICTIONS))] == ["t0", "t1"]
        folder.add(ROWS[2], Prediction(instance_id="t2", model_name_or_path="p/m", model_patch="é"))
        assert file.read_bytes() == whole


def lines(folder: BatchFolder, name: str) -> list[bytes]:
    return (folder.path / name).read_bytes().splitlines()


def test_a_line_that_somebody_broke_is_named(folder: BatchFolder) -> None:
    with (folder.path / RESULTS).open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(ConfigError, match="Line 4 of") as failed:
        folder.results()
    assert failed.value.code == "batch-folder"


def test_what_is_forgotten_leaves_both_files(folder: BatchFolder) -> None:
    folder.forget({"t1"})
    assert list(folder.results()) == ["t0", "t2"]
    assert [msgspec.json.decode(row)["instance_id"] for row in lines(folder, PREDICTIONS)] == ["t0", "t2"]


def test_a_folder_keeps_the_name_of_its_run_and_is_held_by_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import sys; from pathlib import Path; from treadle.headless.batch.batch_folder import BatchFolder\n"
        "one = BatchFolder(Path(sys.argv[1]))\nwith one.held(lambda: print('waits', flush=True)): print(one.run)"
    )
    first, second = BatchFolder(tmp_path), BatchFolder(tmp_path)
    with first.held(nothing):
        other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "waits\n"
        monkeypatch.setattr(batch_folder, "FOLDER_WAITS", 0.0)
        with pytest.raises(ConfigError) as failed, second.held(nothing):
            pass
        assert failed.value.code == "batch-busy"
    assert (other.communicate()[0], other.returncode) == (f"{first.run}\n", 0)


def enter(path: Path) -> None:
    with BatchFolder(path).held(nothing):
        pass


def test_a_folder_with_results_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text("x\n")
    with pytest.raises(ConfigError, match="not from a batch of Treadle"):
        enter(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        enter(tmp_path / "file")


def test_what_is_known_of_a_task_is_kept(folder: BatchFolder) -> None:
    begun = TaskBegun(digest="d", session="s", attempt=2, tree="t", goes_on_after=3)
    assert folder.begun("t1") is None
    folder.note("t1", begun)
    assert folder.begun("t1") == begun


def test_the_sessions_of_a_run_have_names_of_their_own() -> None:
    long = "x" * 128
    names = [session_of("run", name, attempt) for name in ("a", "a.b", long, f"{long[:-1]}y") for attempt in (1, 2)]
    assert len(set(names)) == len(names)
    assert names[:2] == ["run.a", "run.a-2"]
    assert max(map(len, names)) <= len("run.") + 50
    assert all(name.startswith("run.") for name in names)


def ended(stop: TurnStop, *, denied: int = 0, error: ModelError | None = None) -> tuple[str, str]:
    row = how_it_went("t", TurnOutcome(stop=stop, denied=denied, error=error))
    assert bool(row.why) is (row.state == "error")
    return row.state, row.kind


def test_every_end_of_a_turn_is_the_models_or_somebody_elses() -> None:
    limited = ModelError(kind=ErrorKind.RATE_LIMIT, message="no")
    assert {stop: ended(stop) for stop in TurnStop} == {
        TurnStop.END_TURN: ("done", ""),
        TurnStop.MAX_TURN_REQUESTS: ("failed", "steps"),
        TurnStop.REFUSAL: ("failed", "refusal"),
        TurnStop.CANCELLED: ("error", "interrupted"),
        TurnStop.ERROR: ("error", "provider"),
        TurnStop.MISTAKES: ("failed", "mistakes"),
        TurnStop.LOOP: ("failed", "loop"),
        TurnStop.BUDGET: ("failed", "budget"),
        TurnStop.TIME: ("failed", "time"),
    }
    assert ended(TurnStop.END_TURN, denied=1) == ("done", "denied")
    assert ended(TurnStop.ERROR, error=limited) == ("error", "provider-rate_limit")


def test_results_are_meant_by_state_by_kind_or_by_its_beginning() -> None:
    row = TaskRow(id="a", state="error", kind="provider-rate_limit")
    meant = [
        word
        for word in ("error", "provider", "provider-rate_limit", "rate_limit", "prov", "failed", "")
        if is_meant(row, [word])
    ]
    assert meant == ["error", "provider", "provider-rate_limit"]
    assert not is_meant(row, [])
