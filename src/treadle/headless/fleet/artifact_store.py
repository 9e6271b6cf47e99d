"""Where workers keep what another computer needs to go on with a task: a folder that all of them see, or a bucket."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from treadle.protocol.errors import ConfigError


class ArtifactStore(Protocol):
    """Keeps bytes under keys such as `RUN/ID/1`. Each call may raise `OSError`."""

    def put(self, key: str, data: bytes) -> None:
        """Keep data, whole or not at all."""
        ...

    def get(self, key: str) -> bytes:
        """Give what was kept."""
        ...

    def list(self, prefix: str) -> Sequence[str]:
        """Name the keys that begin with a folder's name and a slash, in their order."""
        ...

    def delete(self, key: str) -> None:
        """Forget a key, if it is there."""
        ...


class FolderStore:
    """A folder, such as one of a network file system."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, data: bytes) -> None:
        """Write a file beside, sync it, and give it its name."""
        file = self._folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}~{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with new.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)

    def get(self, key: str) -> bytes:
        """Read a file."""
        return (self._folder / key).read_bytes()

    def list(self, prefix: str) -> Sequence[str]:
        """Name the files of a folder."""
        folder = self._folder / prefix
        if not folder.is_dir():
            return []
        return [f"{prefix}{one.name}" for one in sorted(folder.iterdir()) if not one.name.startswith(".")]

    def delete(self, key: str) -> None:
        """Remove a file, and its folder where that was its last."""
        file = self._folder / key
        file.unlink(missing_ok=True)
        try:
            file.parent.rmdir()
        except OSError:
            return


def artifact_store(place: str) -> ArtifactStore | None:
    """Open a store by its name; None where there is none. Raises `ConfigError`."""
    if not place:
        return None
    if place.startswith("s3://"):
        from treadle.headless.fleet.s3_store import BucketStore

        return BucketStore(place)
    if "://" in place and not place.startswith("file://"):
        raise ConfigError(
            "fleet-store",
            f"The store {place} cannot be used.",
            why="It is neither a folder nor a bucket.",
            fix="Name a folder with --store that all workers see, or s3://BUCKET/PREFIX.",
        )
    folder = Path(place.removeprefix("file://")).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "fleet-store",
            f"The store {folder} cannot be used.",
            why=str(error),
            fix="Name another folder with --store.",
        ) from error
    return FolderStore(folder)
