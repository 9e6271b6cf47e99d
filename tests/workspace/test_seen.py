"""What the model knows of the files."""

import itertools
import os
from pathlib import Path

from treadle.workspace.files.seen import SeenFiles
from treadle.workspace.files.text_files import sha256

_ticks = itertools.count(1)


def _write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    # A clock tick is too coarse to tell two writes in one test apart.
    os.utime(path, ns=(0, next(_ticks) * 10**9))
    return sha256(data)


def test_a_change_by_someone_else_is_told_once_and_stays_stale_until_read(tmp_path: Path) -> None:
    seen, path = SeenFiles(), tmp_path / "a"
    seen.note(str(path), _write(path, b"one"))
    assert seen.news() == ()
    after = _write(path, b"two")
    assert [one.path for one in seen.news()] == [str(path)]
    assert seen.news() == ()
    assert seen.stale(str(path), after)
    seen.note(str(path), after)
    assert not seen.stale(str(path), after)


def test_a_touched_file_with_the_same_bytes_is_no_news(tmp_path: Path) -> None:
    seen, path = SeenFiles(), tmp_path / "a"
    seen.note(str(path), _write(path, b"one"))
    _write(path, b"one")
    assert seen.news() == ()


def test_a_deleted_file_is_told_and_a_file_never_seen_is_never_stale(tmp_path: Path) -> None:
    seen, path = SeenFiles(), tmp_path / "a"
    seen.note(str(path), _write(path, b"one"))
    path.unlink()
    assert seen.stale(str(path), "")
    assert [one.path for one in seen.news()] == [str(path)]
    assert not seen.stale(str(path), "")  # it may be made again
    assert seen.stale(str(path), _write(path, b"two"))
    assert not seen.stale(str(tmp_path / "b"), "anything")
