"""Going through folders however deep they lie; `os.walk` of Python 3.11 fails where calls cannot be nested so deep."""

import os
from collections.abc import Iterator
from typing import AnyStr


def walk(top: "AnyStr | os.PathLike[AnyStr]") -> Iterator[tuple[AnyStr, list[AnyStr], list[AnyStr]]]:
    """Give each folder from the top down, with the names of the folders and of all else in it, as `os.walk` does.

    Those of the folders that are still in their list when the next one is asked for are gone into, in that order; no
    link is followed. A folder that cannot be listed is left out, as one is whose path is too long for the system.
    """
    left = [os.fspath(top)]
    while left:
        place = left.pop()
        folders: list[AnyStr] = []
        others: list[AnyStr] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else others).append(entry.name)
        except OSError:
            continue
        yield place, folders, others
        below = (os.path.join(place, name) for name in reversed(folders))  # noqa: PTH118 - many, of text or of bytes
        left += [path for path in below if not os.path.islink(path)]  # noqa: PTH114 - as above


def _is_folder(entry: "os.DirEntry[AnyStr]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
