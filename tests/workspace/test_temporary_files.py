"""Files that a killed writer left without their name are removed; nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.temporary_files import TemporaryFiles, temporary_name


def _killed_while_noting(folder: Path, path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from treadle.workspace.files.temporary_files import TemporaryFiles\n"
        "with TemporaryFiles(sys.argv[1]).noted(sys.argv[2]):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, folder, path], check=False)


def test_what_a_killed_writer_left_is_removed_with_its_note(tmp_path: Path) -> None:
    stray = tmp_path / temporary_name()
    stray.touch()
    _killed_while_noting(tmp_path / "notes", stray)
    assert TemporaryFiles(str(tmp_path / "notes")).sweep() == (str(stray),)
    assert (stray.exists(), list((tmp_path / "notes").iterdir())) == (False, [])


def test_what_a_living_writer_writes_stays(tmp_path: Path) -> None:
    stray = tmp_path / temporary_name()
    stray.touch()
    temporary_files = TemporaryFiles(str(tmp_path / "notes"))
    with temporary_files.noted(str(stray)):
        assert temporary_files.sweep() == ()
        assert stray.exists()
    assert list((tmp_path / "notes").iterdir()) == []


def test_only_regular_files_with_our_names_and_not_behind_links_are_removed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    other, folder, linked = tmp_path / "a.txt", tmp_path / temporary_name(), tmp_path / "link" / temporary_name()
    other.touch()
    folder.mkdir()
    linked.touch()
    for path in (other, folder, linked, tmp_path / temporary_name()):
        _killed_while_noting(tmp_path / "notes", path)
    assert TemporaryFiles(str(tmp_path / "notes")).sweep() == ()
    assert (other.exists(), folder.exists(), linked.exists()) == (True, True, True)
    assert list((tmp_path / "notes").iterdir()) == []


def test_without_a_folder_nothing_is_noted_and_an_unwritable_one_hinders_nobody(tmp_path: Path) -> None:
    assert TemporaryFiles().sweep() == ()
    (tmp_path / "file").touch()
    with TemporaryFiles().noted("x"), TemporaryFiles(str(tmp_path / "file" / "below")).noted("y"):
        pass


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    me = owner_of(os.getpid())
    assert lives(me)
    assert not lives(Owner(me.pid, me.started - 1))
    ended = subprocess.Popen(["true"])
    named = owner_of(ended.pid)
    ended.wait()
    assert not lives(named)
