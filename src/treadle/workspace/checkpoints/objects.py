"""The database of checkpoints: contents by their SHA-256, names of trees, and what the files looked like last."""

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from treadle.protocol.errors import StoreError
from treadle.workspace.checkpoints.trees import NO_TREE, TreeEntry, TreeKind, pack_listing, unpack_listing

_SCHEMA = """
    CREATE TABLE objects (id BLOB PRIMARY KEY, base BLOB, depth INTEGER, size INTEGER, data BLOB);
    CREATE TABLE refs (name TEXT PRIMARY KEY, tree TEXT NOT NULL, number INTEGER NOT NULL);
    CREATE TABLE folders (path BLOB PRIMARY KEY, seen BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE state (pruned INTEGER NOT NULL);
    INSERT INTO state VALUES (0);
"""
_VERSION = 1
_WINDOW = 32 * 1024
"""Bytes that a version can share with the one before it: what zlib can look back."""

_LONGEST_CHAIN = 16


_SAMPLE = 64 * 1024


def _level(data: bytes) -> int:
    """Say how much to pack: what begins as if it was packed already is stored as it is, in a tenth of the time."""
    sample = data[:_SAMPLE]
    return 0 if len(data) > _SAMPLE and len(zlib.compress(sample, 1)) > len(sample) * 0.95 else 1


class Objects:
    """An open database. Methods raise `sqlite3.Error`, and `StoreError` for what is missing or damaged in it."""

    def __init__(self, path: Path, *, packs: bool = True) -> None:
        self.path = path
        self._packs = packs
        self._walked: set[bytes | None] = set()
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        self.connection = connection
        try:
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version={_VERSION}; COMMIT;")
            # Without a sync for each transaction: a power cut may take the last ones, and leaves the others whole.
            connection.execute("PRAGMA synchronous=NORMAL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != _VERSION:
                raise StoreError(
                    "checkpoints-newer",
                    f"The checkpoints in {path.parent} were written by another version of Treadle.",
                    why=f"Their format is {version}, and this version knows {_VERSION}.",
                    fix="Use the newer version, or turn checkpoints off. Your files were not changed.",
                )
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it or nothing."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise

    def has(self, what: str) -> bool:
        """Whether something is stored."""
        return self._one("SELECT 1 FROM objects WHERE id = ?", bytes.fromhex(what)) is not None

    def add(self, data: bytes, *, like: str = "") -> str:
        """Store bytes and give their id; `like` is what they probably are a new version of."""
        digest = sha256(data)
        key = digest.digest()
        if self._one("SELECT 1 FROM objects WHERE id = ?", key) is not None:
            return digest.hexdigest()
        base, depth, packed = None, 0, b""
        if like and len(data) <= _WINDOW:
            base, depth, packed = self._as_change(data, bytes.fromhex(like))
        if base is None:
            packed = zlib.compress(data, _level(data) if self._packs else 0)
        self.connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", (key, base, depth, len(data), packed))
        return digest.hexdigest()

    def _as_change(self, data: bytes, base: bytes) -> tuple[bytes | None, int, bytes]:
        row = self._one("SELECT depth, size FROM objects WHERE id = ?", base)
        if row is None or row[0] >= _LONGEST_CHAIN or not 0 < row[1] <= _WINDOW:
            return None, 0, b""
        packer = zlib.compressobj(6, zdict=self._load(base))
        return base, row[0] + 1, packer.compress(data) + packer.flush()

    def blob(self, what: str) -> bytes:
        """Read bytes by their id; what was damaged is not given."""
        data = self._load(bytes.fromhex(what))
        if sha256(data).hexdigest() != what:
            raise self._damaged("A file in it has other bytes than were stored.")
        return data

    def _load(self, key: bytes) -> bytes:
        row = self._one("SELECT base, data FROM objects WHERE id = ?", key)
        if row is None:
            raise self._damaged("A file is missing in it.")
        try:
            if row[0] is None:
                return zlib.decompress(row[1])
            unpacker = zlib.decompressobj(zdict=self._load(row[0]))
            return unpacker.decompress(row[1]) + unpacker.flush()
        except zlib.error as error:
            raise self._damaged(f"A file in it cannot be read ({error}).") from error

    def listing(self, tree: str) -> dict[bytes, TreeEntry]:
        """Read what is directly in a tree."""
        if tree == NO_TREE:
            return {}
        try:
            return unpack_listing(self.blob(tree))
        except (msgspec.MsgspecError, ValueError) as error:
            raise self._damaged(f"A folder in it cannot be read ({error}).") from error

    def add_listing(self, listing: dict[bytes, TreeEntry], *, like: str = "") -> str:
        """Store what is directly in a folder, and give its id; an empty one has none."""
        return self.add(pack_listing(listing), like=like) if listing else NO_TREE

    def _damaged(self, why: str) -> StoreError:
        return StoreError(
            "checkpoints-damaged",
            "This checkpoint cannot be read.",
            why=f"{self.path} is damaged. {why}",
            fix="Choose another checkpoint. Your files were not changed.",
        )

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self.connection.execute(query, values).fetchone()
        return found

    def name(self, ref: str, tree: str) -> None:
        """Keep a tree under a name; it is the newest now."""
        self.connection.execute(
            "INSERT OR REPLACE INTO refs SELECT ?, ?, ifnull(max(number), 0) + 1 FROM refs", (ref, tree)
        )

    def refs(self) -> list[tuple[str, str, int]]:
        """Give name, tree and number of all that is kept, the newest first."""
        return self.connection.execute("SELECT name, tree, number FROM refs ORDER BY number DESC, name").fetchall()

    def pruned(self) -> int:
        """Count how often something was removed: what is remembered of the contents holds only since then."""
        return int(self.connection.execute("SELECT pruned FROM state").fetchone()[0])

    def keep_newest(self, most_bytes: int) -> tuple[str, ...]:
        """Keep of the named trees, the newest first, as many as fit, at least one; gives the names that went.

        All contents that none of these needs go, too.
        """
        refs = self.refs()
        held: set[bytes] = set()
        kept: set[str] = set()
        self._walked.clear()
        total = 0
        for tree in dict.fromkeys(tree for _, tree, _ in refs):
            new: dict[bytes, int] = {}
            self._mark(tree, held, new)
            if kept and total + sum(new.values()) > most_bytes:
                break  # the older ones go, too
            total += sum(new.values())
            held.update(new)
            kept.add(tree)
        gone_names = tuple(name for name, tree, _ in refs if tree not in kept)
        self.connection.execute("CREATE TEMP TABLE held (id BLOB PRIMARY KEY)")
        try:
            with self.transaction():
                self.connection.executemany("DELETE FROM refs WHERE name = ?", ((name,) for name in gone_names))
                self.connection.executemany("INSERT INTO held VALUES (?)", ((key,) for key in held))
                gone = self.connection.execute("DELETE FROM objects WHERE id NOT IN (SELECT id FROM held)").rowcount
                if gone:
                    self.connection.execute("DELETE FROM folders")
                    self.connection.execute("UPDATE state SET pruned = pruned + 1")
        finally:
            self.connection.execute("DROP TABLE held")
        return gone_names

    def compact(self) -> None:
        """Give the space of what was removed back to the disk."""
        self.connection.executescript("PRAGMA incremental_vacuum")  # a plain `execute` ends with its first page
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _mark(self, tree: str, held: set[bytes], new: dict[bytes, int]) -> None:
        """Add all that a tree needs to `new`, with its bytes; a tree that was walked is in `_walked`."""
        waiting = [(tree, True)] if tree else []
        while waiting:
            what, is_tree = waiting.pop()
            at: bytes | None = bytes.fromhex(what)
            if is_tree and at not in self._walked:
                self._walked.add(at)
                waiting += [
                    (entry.what, entry.kind is TreeKind.FOLDER)
                    for entry in self.listing(what).values()
                    if entry.kind is not TreeKind.NOT_COVERED
                ]
            while at is not None and at not in held and at not in new:
                row = self.connection.execute("SELECT base, length(data) FROM objects WHERE id = ?", (at,)).fetchone()
                if row is None:
                    raise self._damaged("A file is missing in it.")
                new[at] = row[1] + len(at)
                at = row[0]
