"""Saving: all or nothing, over exactly the expected bytes."""

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.protocol.errors import ToolError
from treadle.workspace.files.saving import save
from treadle.workspace.files.text_files import sha256


def _entries(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_a_new_file_and_its_directories_are_made(tmp_path: Path) -> None:
    save(str(tmp_path / "a/b/c.txt"), b"hello", expected="", name="c.txt")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"hello"
    assert _entries(tmp_path / "a/b") == ["c.txt"]


def test_mode_and_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(0o750)
    try:
        os.setxattr(path, "user.note", b"kept")
        keeps_attributes = True
    except OSError:
        keeps_attributes = False
    save(str(path), b"new", expected=sha256(b"old"), name="run.sh")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    if keeps_attributes:
        assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    save(str(path), b"new", expected=sha256(b"old"), name="a.txt")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


def test_newer_text_of_the_user_wins(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"theirs")
    with pytest.raises(ToolError, match="changed by someone else in the meantime"):
        save(str(path), b"ours", expected=sha256(b"old"), name="a.txt")
    with pytest.raises(ToolError, match="created by someone else in the meantime"):
        save(str(path), b"ours", expected="", name="a.txt")
    assert (path.read_bytes(), _entries(tmp_path)) == (b"theirs", ["a.txt"])


def test_a_file_deleted_in_the_meantime_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="deleted in the meantime"):
        save(str(tmp_path / "a.txt"), b"new", expected=sha256(b"old"), name="a.txt")
    assert _entries(tmp_path) == []


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(ToolError, match="cannot be saved: it is read-only"):
        save(str(path), b"new", expected=sha256(b"old"), name="a.txt")
    assert path.read_bytes() == b"old"


def test_a_link_put_in_after_the_path_was_resolved_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside").symlink_to(tmp_path / "outside")
    (tmp_path / "file").symlink_to(tmp_path / "outside/file")
    with pytest.raises(ToolError, match="became a link"):
        save(str(tmp_path / "inside/a.txt"), b"x", expected="", name="a.txt")
    with pytest.raises(ToolError, match="leads through a link"):
        save(str(tmp_path / "file"), b"x", expected="", name="file")
    assert _entries(tmp_path / "outside") == []


def _saved_elsewhere(program: str, path: Path) -> str:
    """Save in another process, which has limits of its own, and give what it said."""
    code = (
        "import sys, resource, os\n"
        "from treadle.workspace.files.saving import save\n"
        "from treadle.workspace.files.text_files import sha256\n"
        "from treadle.protocol.errors import ToolError\n"
        f"{program}\n"
        "try:\n"
        "    save(sys.argv[1], b'n' * 100_000, expected=sha256(b'old'), name='a.txt')\n"
        "    print('saved')\n"
        "except ToolError as error:\n"
        "    print(error.text)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    # The limit on a file's size stops the write half-way, as a full disk does.
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, {resource.RLIM_INFINITY}))"
    said = _saved_elsewhere(limit, path)
    assert said.startswith("a.txt cannot be saved: it would be larger than the system allows. Nothing was changed")
    assert (path.read_bytes(), _entries(tmp_path)) == (b"old", ["a.txt"])


def test_a_really_full_file_system_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        path = tmp_path / "a.txt"
        path.write_bytes(b"old")
        with pytest.raises(ToolError, match="the disk is full"):
            save(str(path), b"n" * 100_000, expected=sha256(b"old"), name="a.txt")
        assert (path.read_bytes(), _entries(tmp_path)) == (b"old", ["a.txt"])
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize("links", [1, 2])
def test_the_users_own_file_keeps_a_group_that_the_user_is_not_in(tmp_path: Path, links: int) -> None:
    """No new file could have that group, so it is written in place; not where it has another name as well."""
    folder = tmp_path / "w"
    folder.mkdir()
    path = folder / "a.txt"
    path.write_bytes(b"old")
    os.chown(folder, 65534, 65534)
    os.chown(path, 65534, 33)
    path.chmod(0o644)
    if links > 1:
        (folder / "b.txt").hardlink_to(path)
    for directory in (tmp_path, *(one for one in tmp_path.parents if one.stat().st_mode & 0o777 == 0o700)):
        directory.chmod(0o755)
    said = _saved_elsewhere("os.setgroups([]); os.setgid(65534); os.setuid(65534)", path)
    if links > 1:
        assert said.startswith("a.txt cannot be saved: it, or its group, belongs to somebody else.")
        assert path.read_bytes() == b"old"
        return
    assert said == "saved"
    status = path.stat()
    assert (path.read_bytes(), status.st_uid, status.st_gid) == (b"n" * 100_000, 65534, 33)
    assert _entries(folder) == ["a.txt"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_file_that_is_written_in_place_is_as_it_was_where_there_is_no_room(tmp_path: Path) -> None:
    """The new text fits once, beside the old one, and not twice."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        os.chown(disk, 65534, 65534)
        path = disk / "a.txt"
        path.write_bytes(b"old")
        os.chown(path, 65534, 33)
        for directory in (tmp_path, *(one for one in tmp_path.parents if one.stat().st_mode & 0o777 == 0o700)):
            directory.chmod(0o755)
        said = _saved_elsewhere("os.setgroups([]); os.setgid(65534); os.setuid(65534)", path)
        assert said.startswith("a.txt cannot be saved: the disk is full.")
        assert (path.read_bytes(), _entries(disk)) == (b"old", ["a.txt"])
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_directory_without_write_permission_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o666)
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    said = _saved_elsewhere("os.setuid(65534)", path)
    assert said.startswith("a.txt cannot be saved: Permission denied.")
    assert (path.read_bytes(), _entries(tmp_path)) == (b"old", ["a.txt"])
