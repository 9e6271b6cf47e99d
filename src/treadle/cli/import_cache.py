"""A cache of imports: the compiled code of all modules that Treadle loads, in one file.

Python looks for each module in several folders and reads a file for each, which is an eighth of a start with 400 of
them. The cache is kept beside the compiled code of Treadle, and trusted as that is. As for Python itself, a module is
unchanged while the time and size of its source are. What changed, and what is not in the cache, is imported in the
usual way.
"""

import marshal
import os
import sys
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from time import time
from types import CodeType

TYPE_CHECKING = False
"""`typing` takes longer to load than `--version` to answer."""
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedWriter
    from types import ModuleType

    Pair = tuple[int, int]
    Entry = tuple[str, str, str, bool, Pair, Pair]
    """A module: the folder it was found in, its source, the compiled file, whether it is a package, the time (ns) and
    size (bytes) of the source, and where its code begins in the cache and how long it is (bytes).

    The source of an extension is its library, from which it is loaded; it has no compiled file and no code.
    """

FORMAT = 1
"""To be raised when the file is to be read in another way."""

ENOUGH = 16
"""New modules that are worth writing the cache again: nearly every run loads one or two that no other did."""

_HEADER = 16
"""Bytes before the code, in a compiled file of Python as in the cache."""

_STALE = 60.0
"""Seconds after which a cache that is being written was left by a run that was killed."""


class ImportCache:
    """Finds modules for Python, see `sys.meta_path`."""

    def __init__(self, place: str) -> None:
        """Open the file; one that is not there, is damaged or of another Python has nothing in it."""
        self._place = place
        self._known: dict[str, Entry] = {}
        self._uncacheable: set[str] = set()
        self._missed: set[str] = set()
        self._names: dict[str, frozenset[str] | None] = {}
        self._file = -1
        with suppress(OSError, ValueError, EOFError, TypeError):
            self._file = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            head = os.pread(self._file, _HEADER, 0)
            start, end = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
            index = os.pread(self._file, end - start, start) if os.fstat(self._file).st_size == end else b""
            made_for, known, uncacheable = marshal.loads(index)  # noqa: S302 - Treadle's own file, where its code is
            if made_for == _MADE_FOR:
                self._known, self._uncacheable = known, set(uncacheable)

    def find_spec(
        self,
        fullname: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,  # noqa: ARG002 - what Python passes
    ) -> ModuleSpec | None:
        """Give where a module is; None where Python has to look for it."""
        entry = self._known.get(fullname)
        if entry is None or not self._comes_first(fullname, entry[0], path) or not _is_unchanged(entry):
            self._missed.add(fullname)
            return None
        folder, source, compiled, package, *_ = entry
        loader = _Loader(fullname, source, self) if compiled else ExtensionFileLoader(fullname, source)
        spec = ModuleSpec(fullname, loader, origin=source, is_package=package)
        spec.has_location, spec.cached = True, compiled or None
        if package:
            spec.submodule_search_locations = [f"{folder}/{fullname.rpartition('.')[2]}"]
        return spec

    def _comes_first(self, name: str, folder: str, path: "Sequence[str] | None") -> bool:
        """Whether Python would look for a module in this folder, and surely find none of its name before."""
        if path is not None:
            return folder in path
        for place in sys.path:
            if place == folder:
                return True
            if place not in self._names:
                self._names[place] = _names_in(place)
            names = self._names[place]
            if names is None or name in names:
                break
        return False

    def code(self, name: str) -> CodeType | None:
        """Give the code of a module that was found here; None where it cannot be read any more."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            code = marshal.loads(self._read(self._known[name]))  # noqa: S302 - what Python does with its own files
            if isinstance(code, CodeType):
                return code
        self._missed.add(name)
        return None

    def save(self) -> None:
        """Write the cache again if much was imported that is not in it; does nothing where that is not possible."""
        if sys.dont_write_bytecode or len(self._missed - self._uncacheable) < ENOUGH:
            return
        written = f"{self._place}.new"
        try:
            with open(written, "xb") as file:  # noqa: PTH123 - `pathlib` takes longer to load than this to run
                self._write(file)
            os.replace(written, self._place)  # noqa: PTH105
        except FileExistsError:
            with suppress(OSError):
                if time() - os.stat(written).st_mtime > _STALE:  # noqa: PTH116
                    os.unlink(written)  # noqa: PTH108
        except (OSError, ValueError, KeyboardInterrupt):
            with suppress(OSError):
                os.unlink(written)  # noqa: PTH108

    def _write(self, file: "BufferedWriter") -> None:
        file.write(bytes(_HEADER))
        known: dict[str, Entry] = {}
        for name, entry, code in self._to_keep():
            known[name] = (*entry[:5], (file.tell(), len(code)))
            file.write(code)
        start = file.tell()
        file.write(marshal.dumps((_MADE_FOR, known, tuple((self._uncacheable | self._missed).difference(known)))))
        end = file.tell()
        file.seek(0)
        file.write(start.to_bytes(8, "little") + end.to_bytes(8, "little"))
        file.flush()
        os.fsync(file.fileno())

    def _to_keep(self) -> "Iterator[tuple[str, Entry, bytes]]":
        """Give what was in the cache and is unchanged, and what was imported besides."""
        for name, entry in self._known.items():
            if name not in self._missed and _is_unchanged(entry):
                yield name, entry, self._read(entry)
        for name in tuple(self._missed):  # a thread may import more meanwhile
            found = _compiled(name)
            if found is not None:
                yield name, *found

    def _read(self, entry: "Entry") -> bytes:
        place, size = entry[5]
        return os.pread(self._file, size, place)


class _Loader(SourceFileLoader):
    """Python's own loader of sources but for where the compiled code comes from."""

    def __init__(self, name: str, source: str, cache: ImportCache) -> None:
        super().__init__(name, source)
        self._cache = cache

    def get_code(self, fullname: str) -> CodeType | None:
        return self._cache.code(fullname) or super().get_code(fullname)


def install_import_cache(source: str) -> ImportCache:
    """Let Python look for modules in the cache beside the compiled file of `source`, before it looks into folders."""
    cache = ImportCache(f"{cache_from_source(source).removesuffix('.pyc')}.start")
    if PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), cache)
    return cache


_MADE_FOR = (FORMAT, sys.version, sys.flags.optimize)
"""What the cache depends on besides the modules."""


def _names_in(place: str) -> frozenset[str] | None:
    """Give what names of modules there may be in a folder; None for what is no folder, such as an archive."""
    try:
        return frozenset(name.partition(".")[0] for name in os.listdir(place or "."))  # noqa: PTH208
    except FileNotFoundError:
        return frozenset()
    except OSError:
        return None


def _is_unchanged(entry: "Entry") -> bool:
    try:
        return _stamp(os.stat(entry[1])) == entry[4]  # noqa: PTH116
    except OSError:
        return False


def _stamp(source: os.stat_result) -> "Pair":
    return source.st_mtime_ns, source.st_size


def _compiled(name: str) -> "tuple[Entry, bytes] | None":
    """Give a module that was loaded from a file, and its code as Python keeps it; None where it keeps none."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or spec.name != name or type(spec.loader) not in (SourceFileLoader, _Loader, ExtensionFileLoader):
        return None
    package = spec.submodule_search_locations is not None
    folder = os.path.dirname(os.path.dirname(spec.origin) if package else spec.origin)  # noqa: PTH120
    try:
        source = os.stat(spec.origin)  # noqa: PTH116
        code = b"" if type(spec.loader) is ExtensionFileLoader else _code_in(spec.cached or "", source)
    except OSError:
        return None
    if code is None:
        return None
    return (folder, spec.origin, spec.cached or "", package, _stamp(source), (0, 0)), code


def _code_in(compiled: str, source: os.stat_result) -> bytes | None:
    """Read a compiled file of Python; None where it is not of this source, or known by another sign than its time."""
    with open(compiled, "rb") as file:  # noqa: PTH123
        head, code = file.read(_HEADER), file.read()
    stamp = (0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    return code if tuple(int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12)) == stamp else None
