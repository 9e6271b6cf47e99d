"""The modules of a start from one file: found and read one by one the first time, and from there on together.

Python looks for each module in several folders and reads a file of its own for it, which is an eighth of a start with
400 of them. This keeps their compiled code in one file, beside the compiled code of Treadle and trusted as that is. A
module is unchanged while the time and size of its source are, as for Python itself. What changed, and what is not in
the file, is loaded in the usual way; where the file cannot be written, everything is.
"""

import marshal
import os
import sys
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from types import CodeType

TYPE_CHECKING = False
"""`typing` takes longer to load than `--version` to answer."""
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType
    from typing import Any

    Entry = tuple[str, str, str, bool, int, int, int, int]
    """Of a module: the folder it was found in, its source, the compiled file, whether it is a package, the time (ns)
    and size (bytes) of the source, and where its code begins in the file and how long it is (bytes).

    Of an extension the source is the library, which is loaded from there; it has no compiled file and no code.
    """

FORMAT = 1
"""To be raised when the file is to be read in another way."""

ENOUGH = 16
"""New modules that are worth writing the file again: nearly every run loads one or two that no other did."""

_HEADER = 16
"""Bytes before the code, in a compiled file of Python as in this one."""


class ImportCache:
    """Finds modules for Python, see `sys.meta_path`."""

    def __init__(self, place: str) -> None:
        """Open the file; one that is not there, is damaged or of another Python has nothing in it."""
        self._place = place
        self._known: dict[str, Entry] = {}
        self._elsewhere: set[str] = set()
        self._looked_for: set[str] = set()
        self._file = -1
        with suppress(OSError, ValueError, EOFError, TypeError):
            self._file = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            head = os.pread(self._file, _HEADER, 0)
            start, end = int.from_bytes(head[:8], "little"), int.from_bytes(head[8:], "little")
            index = os.pread(self._file, end - start, start) if os.fstat(self._file).st_size == end else b""
            made_for, known, elsewhere = marshal.loads(index)  # noqa: S302 - Treadle's own file, where its code is
            if made_for == _made_for():
                self._known, self._elsewhere = known, set(elsewhere)

    def find_spec(
        self,
        fullname: str,
        path: "Sequence[str] | None" = None,
        target: "ModuleType | None" = None,  # noqa: ARG002 - what Python passes
    ) -> ModuleSpec | None:
        """Give where a module is; None where Python has to look for it."""
        entry = self._known.get(fullname)
        if entry is None or entry[0] not in (sys.path if path is None else path) or not _is_unchanged(entry):
            self._looked_for.add(fullname)
            return None
        folder, source, compiled, package, *_ = entry
        loader = _Loader(fullname, source, self) if compiled else ExtensionFileLoader(fullname, source)
        spec = ModuleSpec(fullname, loader, origin=source, is_package=package)
        spec.has_location, spec.cached = True, compiled or None
        if package:
            spec.submodule_search_locations = [f"{folder}/{fullname.rpartition('.')[2]}"]
        return spec

    def code(self, name: str) -> CodeType | None:
        """Give the code of a module that was found here; None where it cannot be read any more."""
        with suppress(OSError, ValueError, EOFError, TypeError):
            code = marshal.loads(self._read(self._known[name]))  # noqa: S302 - what Python does with its own files
            if isinstance(code, CodeType):
                return code
        self._looked_for.add(name)
        return None

    def save(self) -> None:
        """Write the file again if much was loaded that is not in it; nothing where that is not possible."""
        if sys.dont_write_bytecode or len(self._looked_for - self._elsewhere) < ENOUGH:
            return
        written = f"{self._place}.{os.getpid()}"
        try:
            with open(written, "xb") as file:  # noqa: PTH123 - `pathlib` takes longer to load than this to run
                file.write(bytes(_HEADER))
                known: dict[str, Entry] = {}
                for name, entry, code in self._to_keep():
                    known[name] = (*entry[:6], file.tell(), len(code))
                    file.write(code)
                elsewhere = tuple((self._elsewhere | self._looked_for).difference(known))
                start = file.tell()
                file.write(marshal.dumps((_made_for(), known, elsewhere)))
                end = file.tell()
                file.seek(0)
                file.write(start.to_bytes(8, "little") + end.to_bytes(8, "little"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(written, self._place)  # noqa: PTH105
        except (OSError, ValueError, KeyboardInterrupt):
            with suppress(OSError):
                os.unlink(written)  # noqa: PTH108

    def _to_keep(self) -> "Iterator[tuple[str, Entry, bytes]]":
        """Give what was in the file and still holds, and what was loaded besides."""
        for name, entry in self._known.items():
            if name not in self._looked_for and _is_unchanged(entry):
                yield name, entry, self._read(entry)
        for name in self._looked_for:
            found = _compiled(name)
            if found is not None:
                yield name, *found

    def _read(self, entry: "Entry") -> bytes:
        return os.pread(self._file, entry[7], entry[6])


class _Loader(SourceFileLoader):
    """Python's own loader of sources but for where the compiled code comes from."""

    def __init__(self, name: str, source: str, cache: ImportCache) -> None:
        super().__init__(name, source)
        self._cache = cache

    def get_code(self, fullname: str) -> CodeType | None:
        return self._cache.code(fullname) or super().get_code(fullname)


def install_import_cache(source: str) -> ImportCache:
    """Let Python find modules in the file beside the compiled one of `source`, before it looks into folders."""
    cache = ImportCache(f"{cache_from_source(source).removesuffix('.pyc')}.start")
    if PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), cache)
    return cache


def _made_for() -> "tuple[Any, ...]":
    """What the file depends on: the interpreter, and where modules are looked for but for the folder of the program."""
    places = sys.path if sys.flags.safe_path else sys.path[1:]
    return FORMAT, sys.version, sys.flags.optimize, tuple(places)


def _is_unchanged(entry: "Entry") -> bool:
    try:
        source = os.stat(entry[1])  # noqa: PTH116
    except OSError:
        return False
    return source.st_mtime_ns == entry[4] and source.st_size == entry[5]


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
    return (folder, spec.origin, spec.cached or "", package, source.st_mtime_ns, source.st_size, 0, 0), code


def _code_in(compiled: str, source: os.stat_result) -> bytes | None:
    """Read a compiled file of Python; None where it is not of this source, or known by another sign than its time."""
    with open(compiled, "rb") as file:  # noqa: PTH123
        head, code = file.read(_HEADER), file.read()
    stamp = (0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
    return code if tuple(int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12)) == stamp else None
