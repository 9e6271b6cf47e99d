"""Random histories of two writers and a person: each merge is what the three-way rule says, and nothing is lost."""

import os
import random
from pathlib import Path

import pytest

from treadle.app.subagents.writer_copies import WriterCopy, make_writer_copy, merge, plan, remove_copy, writer_changes
from treadle.protocol.errors import SessionError
from treadle.protocol.protected_names import later_name, secret_name

Entry = tuple[str, int, bytes]
"""A kind (file or link), a mode and bytes."""

Tree = dict[str, Entry]

NAMES = ("a.txt", "b.txt", "src/c.py", "src/deep/d.py", "e.bin", "run.sh", "crlf.txt", "AGENTS.md", ".env", "link")
NEW = ("new.txt", "src/new.py", "more/x.txt", ".github/workflows/ci.yml", "café/ü.txt")


def read_tree(root: Path) -> Tree:
    found: Tree = {}
    for folder, folders, files in os.walk(root):
        for name in (*files, *(one for one in folders if Path(folder, one).is_symlink())):
            path = Path(folder, name)
            below = str(path.relative_to(root))
            if path.is_symlink():
                found[below] = ("link", 0, os.fsencode(path.readlink()))
            else:
                found[below] = ("file", path.stat().st_mode & 0o777, path.read_bytes())
    return found


def write_entry(root: Path, name: str, entry: Entry | None) -> None:
    path = root / name
    path.unlink(missing_ok=True)
    if entry is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry[0] == "link":
        path.symlink_to(os.fsdecode(entry[2]))
    else:
        path.write_bytes(entry[2])
        path.chmod(entry[1])


def lines(rng: random.Random, end: bytes = b"\n") -> bytes:
    return b"".join(b"line %d %d%s" % (number, rng.randrange(10**9), end) for number in range(12))


def begin(rng: random.Random, root: Path) -> None:
    for name in NAMES:
        if name == "link":
            write_entry(root, name, ("link", 0, b"a.txt"))
        elif name == "e.bin":
            write_entry(root, name, ("file", 0o644, b"\0\1" + rng.randbytes(40)))
        else:
            mode = 0o755 if name == "run.sh" else 0o644
            write_entry(root, name, ("file", mode, lines(rng, b"\r\n" if name == "crlf.txt" else b"\n")))


def act(rng: random.Random, root: Path) -> None:
    """Do some things to the files of a folder, as a program or a person does."""
    for _ in range(rng.randrange(1, 7)):
        there = sorted(name for name in read_tree(root) if not name.startswith("files"))
        name = rng.choice(there) if there else "a.txt"
        entry = read_tree(root).get(name, ("file", 0o644, b""))
        match rng.randrange(13):
            case 0:
                write_entry(root, rng.choice(NEW), ("file", 0o644, lines(rng)))
            case 1:
                write_entry(root, name, None)
            case 2 if entry[0] == "file":
                write_entry(root, name, ("file", entry[1] ^ 0o111, entry[2]))
            case 3:
                target = rng.choice((*NAMES, *NEW))
                write_entry(root, name, None)
                write_entry(root, target, entry)
            case 4:
                write_entry(root, name, ("link", 0, rng.choice((b"b.txt", b"nowhere"))))
            case 5:
                write_entry(root, "e.bin", ("file", 0o644, b"\0" + rng.randbytes(20)))
            case _ if entry[0] == "file":
                write_entry(root, name, (*entry[:2], edited(rng, entry[2])))
            case _:
                pass


def edited(rng: random.Random, data: bytes) -> bytes:
    """Replace one line, by one of few texts, so that two sides may write the same."""
    text = data.splitlines(keepends=True)
    if not text or b"\0" in data:
        return data + b"\0"
    at = rng.randrange(len(text))
    text[at] = b"edit %d%s" % (rng.randrange(3), b"\r\n" if text[at].endswith(b"\r\n") else b"\n")
    return b"".join(text)


def runs(old: list[bytes], new: list[bytes]) -> list[tuple[int, int, tuple[bytes, ...]]]:
    """Give the runs of lines that differ in two texts of as many lines."""
    found: list[tuple[int, int, tuple[bytes, ...]]] = []
    for at, (one, other) in enumerate(zip(old, new, strict=True)):
        if one != other and found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1, (*found[-1][2], other))
        elif one != other:
            found.append((at, at + 1, (other,)))
    return found


def rule_for_lines(base: bytes, user: bytes, child: bytes) -> bytes | None:
    """Merge three texts by the rule; None for a conflict. Lines are only replaced, so that each has its number."""
    if user in (base, child):
        return child
    if child == base:
        return user
    if any(b"\0" in text for text in (base, user, child)):
        return None
    old, mine, other = (text.splitlines(keepends=True) for text in (base, user, child))
    if not len(old) == len(mine) == len(other):
        return None
    ours, theirs = runs(old, mine), runs(old, other)
    if any(one != two and one[0] <= two[1] and two[0] <= one[1] for one in ours for two in theirs):
        return None
    merged = list(mine)
    for start, end, new in theirs:
        merged[start:end] = new
    return b"".join(merged)


def rule(base: Entry | None, user: Entry | None, child: Entry | None) -> Entry | None:
    """Say what a path becomes; raises `ValueError` for a conflict."""
    if child == base or user == child:
        return user
    if user == base:
        return child
    if base is None or user is None or child is None or {base[0], user[0], child[0]} != {"file"}:
        raise ValueError
    modes = {child[1]} if user[1] == base[1] else {user[1]} if child[1] in (base[1], user[1]) else set()
    content = rule_for_lines(base[2], user[2], child[2])
    if not modes or content is None:
        raise ValueError
    return ("file", modes.pop(), content)


class Expected:
    """What one merge is to come to."""

    def __init__(self, base: Tree, user: Tree, child: Tree) -> None:
        self.tree = dict(user)
        self.conflicts: set[str] = set()
        self.held: set[str] = set()
        for name in sorted(base.keys() | child.keys()):
            before, now, after = base.get(name), user.get(name), child.get(name)
            if before == after or now == after:
                continue
            if later_name(name) or secret_name(name):
                self.held.add(name)
                continue
            try:
                result = rule(before, now, after)
            except ValueError:
                self.conflicts.add(name)
                continue
            self.tree.pop(name, None)
            if result is not None:
                self.tree[name] = result


def check_merge(copy: WriterCopy, base: Tree, workspace: Path) -> None:
    child, user = read_tree(copy.folder), read_tree(workspace)
    expected = Expected(base, user, child)
    planned = plan(writer_changes(copy))
    assert read_tree(workspace) == user
    done = merge(writer_changes(copy), digest=planned.digest)
    assert done == planned
    after = read_tree(workspace)
    assert after == expected.tree
    assert {os.path.relpath(one.path, workspace) for one in done.conflicts} == expected.conflicts
    assert {os.path.relpath(one.path, workspace) for one in done.held} == expected.held
    assert {os.path.relpath(one.path, workspace) for one in done.merged} == {
        name for name in user.keys() | after.keys() if user.get(name) != after.get(name)
    }
    # Nothing is lost: what was not taken is in the copy as the writer left it, and in the workspace as the person did.
    assert read_tree(copy.folder) == child
    kept = expected.conflicts | expected.held
    assert all(after.get(name) == user.get(name) for name in kept)
    if kept:
        with pytest.raises(SessionError, match="kept"):
            remove_copy(copy.child_id)
    else:
        again = merge(writer_changes(copy))
        assert (again.merged, again.complete, read_tree(workspace)) == ((), True, after)


def history(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    workspace = (tmp_path / f"shop{seed}").resolve()
    workspace.mkdir()
    begin(rng, workspace)
    base = read_tree(workspace)
    first = make_writer_copy(workspace, (), f"one{seed}")
    second = make_writer_copy(workspace, (), f"two{seed}", like=first)
    assert read_tree(first.folder) == read_tree(second.folder) == base
    act(rng, first.folder)
    act(rng, second.folder)
    if rng.random() < 0.8:
        act(rng, workspace)
    check_merge(first, base, workspace)
    if rng.random() < 0.5:
        act(rng, workspace)
    check_merge(second, base, workspace)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home/treadle"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("seed", range(3))
def test_the_merged_tree_is_what_the_three_way_rule_says(seed: int, home: Path) -> None:
    history(seed, home)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 63))
def test_so_it_is_after_sixty_histories(seed: int, home: Path) -> None:
    history(seed, home)
