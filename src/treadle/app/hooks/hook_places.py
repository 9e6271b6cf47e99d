"""Where hooks may append besides, and the user's own read: scripts and logs; nothing that runs later."""

import os
import shlex
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from treadle.app.config.hook_settings import HookOrigin, HookSpec
from treadle.protocol.patterns import regex
from treadle.protocol.protected_names import secret_name

_NAMED_LOG = r"[\w-][\w.-]*\.(?:log|txt|jsonl|ndjson|csv|tsv|out)(?![\w.-])"
_LOG_NAME = regex(rf"(?<![\w.-]){_NAMED_LOG}")
_FOLDER_LOG_NAME = regex(rf"(?<=\.claude/)(?<!~/\.claude/)(?<!HOME/\.claude/)(?<!HOME\}}/\.claude/){_NAMED_LOG}")
_NOT_LOGS = frozenset({"history.jsonl"})
"""What ends like a log in the folder of Claude Code and is its own."""

_LOGS = "logs"
_PROJECT = regex(r"\$(?:\{(?:CLAUDE|TREADLE)_PROJECT_DIR\}|(?:CLAUDE|TREADLE)_PROJECT_DIR\b)")
_LONGEST_SCRIPT = 256 * 1024
_MOST = 40


class HookAccess(Struct, frozen=True, kw_only=True):
    """What one run of a hook may read and write in the sandbox besides what every command may; absolute, resolved."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


class LogPlaces:
    """Opens what hooks append to, and removes what nothing was written to.

    That is the folder `logs` and the logs directly in `.claude` of the workspace at `root`, and for hooks of the user's
    own file those in the user's folder of Claude Code. Everything else there may run later or configures something.
    """

    def __init__(self, root: str, claude: Path) -> None:
        self._root = root
        self._claude = claude
        self._lock = threading.Lock()
        self._made: Counter[Path] = Counter()

    def open(self, spec: HookSpec) -> HookAccess:
        """Make the logs that a hook names, since only what is there can be opened for it."""
        if spec.origin is HookOrigin.HOST:
            return HookAccess()
        scripts = list(self._files_in(spec))
        text = "\n".join((spec.command, *(spec.arguments or ()), *map(_text_of, scripts)))
        own = Path(self._root, ".claude")
        with self._lock:
            writable = [*self._folder(own, text), *self._files(own, _FOLDER_LOG_NAME.findall(text)[:_MOST])]
            if spec.origin is HookOrigin.USER:
                named = (*_LOG_NAME.findall(text)[:_MOST], *_logs_in(self._claude))
                writable = [*self._folder(self._claude, text), *self._files(self._claude, named), *writable]
        hooks = self._claude / "hooks"
        readable: list[Path] = []
        if spec.origin is HookOrigin.USER:  # the workspace can be read anyway, but for links out of it
            readable += [path for path in scripts if not path.is_relative_to(self._root)]
            readable += [hooks] if _is_folder(hooks) else []
        return HookAccess(
            readable=tuple(dict.fromkeys(os.path.realpath(path) for path in readable)),
            writable=tuple(dict.fromkeys(map(str, writable))),
        )

    def close(self, access: HookAccess) -> None:
        """Remove the logs that were made for this run and stayed empty, once no other run has them."""
        with self._lock:
            for path in map(Path, access.writable):
                if path not in self._made:
                    continue
                self._made[path] -= 1
                if self._made[path] <= 0:
                    del self._made[path]
                    with suppress(OSError):
                        if path.lstat().st_size == 0:
                            path.unlink()

    def _folder(self, above: Path, text: str) -> Iterator[Path]:
        """Give the folder of logs there; it is made where the hook speaks of one. A link is none."""
        folder = above / _LOGS
        if not _is_own(above):
            return
        if _LOGS in text:
            with suppress(OSError):
                folder.mkdir(mode=0o700)
        if _is_own(folder):
            yield folder

    def _files(self, above: Path, names: Iterable[str]) -> Iterator[Path]:
        """Give the logs of these names directly there, each made where it is not there yet."""
        if not _is_own(above):
            return
        for name in dict.fromkeys(names):
            path = above / name
            if name in _NOT_LOGS:
                continue
            if self._make(path) or path in self._made:
                self._made[path] += 1
            if _is_file(path):
                yield path

    def _files_in(self, spec: HookSpec) -> Iterator[Path]:
        """Give the files that a hook's command names, but for secrets: its script, wherever it lies."""
        words: Sequence[str] = (spec.command, *spec.arguments) if spec.arguments is not None else _words(spec.command)
        for word in words:
            named = _PROJECT.sub(lambda _: self._root, word)
            path = Path(self._root, Path(os.path.expandvars(named)).expanduser()) if word else Path()
            with suppress(OSError, ValueError):
                if path.is_absolute() and path.is_file() and secret_name(str(path).lstrip("/")) is None:
                    yield path

    def _make(self, path: Path) -> bool:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        except OSError:
            return False
        return True


def _logs_in(folder: Path) -> list[str]:
    """Name the logs that are in a folder; none where it cannot be listed."""
    try:
        return sorted(path.name for path in folder.iterdir() if _LOG_NAME.fullmatch(path.name))[:_MOST]
    except OSError:
        return []


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LONGEST_SCRIPT).decode(errors="replace")
    except OSError:
        return ""


def _is_own(path: Path) -> bool:
    """Whether a folder is there that no link leads to from here."""
    return _is_folder(path) and os.path.realpath(path) == os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0
