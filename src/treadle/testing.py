"""For tests of your own: a recorded session is played again, with no model, no network and no tool."""

from pathlib import Path

from treadle.engine.replay.tape import play, read_tape


def replay_tape(path: str | Path) -> None:
    """Replay a tape that `treadle export ID --as-test` wrote; raises `AssertionError` with the first difference."""
    difference = play(read_tape(Path(path).read_bytes())).difference
    if difference is not None:
        raise AssertionError(
            f"event {difference.seq} ({difference.type}) {difference.path}: recorded {difference.recorded}, "
            f"rebuilt {difference.rebuilt}. {difference.why}".strip()
        )
