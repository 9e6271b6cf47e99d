"""Runs git for commands in whose confinement the repository is read-only: each call is judged by its real words.

Whatever asks from inside is hostile. Its message is bounded, its descriptors must be files, pipes or terminals, and
what runs is git alone, in a confinement of its own, with the descriptors of the caller.
"""

import array
import asyncio
import contextlib
import fcntl
import os
import shlex
import socket
import stat
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.workspace.commands.variables import SET_FOR_COMMANDS
from treadle.workspace.files.private_file import make_private_folder, write_private
from treadle.workspace.namespaces import git_client

_MOST_BYTES = 1024 * 1024
_MOST_WORDS = 4096
_MOST_WAITING, _MOST_RUNNING = 32, 8
_SECONDS = 5.0  # for the message to arrive
_LENGTH = 8
_CREDENTIALS = struct.Struct("3i")
_FAILED = 128
_FROM = 50
"""The descriptors of callers are numbered from here on: lower ones have uses of their own in a guard."""
_ONLY_PATH = 0o10000000  # O_PATH: a descriptor without access
_TAKEN_ALONG = frozenset(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
) | {"GIT_REFLOG_ACTION", "GIT_MERGE_AUTOEDIT"}
_SAME = frozenset({"GIT_PAGER", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS"})
"""Variables that Treadle sets for all commands."""

_EDITORS = {name: ("true", ":", SET_FOR_COMMANDS[name]) for name in ("GIT_EDITOR", "GIT_SEQUENCE_EDITOR")}
"""Those of editors with the values that take what git gives them as it is; another one is a program of its own."""

_OPENS_AN_EDITOR = frozenset(
    ["am", "branch", "cherry-pick", "commit", "config", "merge", "notes", "pull", "rebase", "replace", "revert", "tag"]
)
_OF_OTHERS = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS"})
_REACHES_OTHERS = frozenset({"archive", "clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule", "svn"})
"""How git reaches others means nothing to a call that reaches none: npm sets it for each, `git add` too."""

_READS = (
    "status log diff show rev-parse ls-files ls-tree cat-file describe blame grep shortlog rev-list merge-base "
    "for-each-ref show-ref check-ignore check-attr diff-tree diff-files diff-index name-rev var version help "
    "whatchanged annotate count-objects fsck show-branch range-diff cherry check-ref-format interpret-trailers "
    "stripspace column get-tar-commit-id verify-commit verify-tag clone init"
)
_SHIM = """#!/bin/sh
# What reads runs here; all else goes to Treadle. Nothing depends on this: the repository is read-only in here.
command= skip=
for word; do
  if [ "$skip" ]; then skip=; continue; fi
  case $word in
    -C|-c|--git-dir|--work-tree|--namespace|--config-env|--exec-path) skip=1 ;;
    -*) ;;
    *) command=$word; break ;;
  esac
done
case $command in
  ""|{reads}) exec {real} "$@" ;;
esac
exec {python} -I -S {client} {socket} {real} "$@"
"""

INSIDE = "/tmp/.treadle"  # noqa: S108 - the session's own
_SOCKET, _CLIENT, _REAL = "socket", "client.py", "real/git"


class GitCall(Struct, frozen=True, kw_only=True):
    """A call of git as it was made: its words without `git`, the folder, and variables that it may take along.

    `process` made it, as far as the kernel says.
    """

    words: tuple[str, ...]
    cwd: str
    variables: Mapping[str, str]
    process: int = 0

    @property
    def line(self) -> str:
        """The call as a shell line."""
        return shlex.join(("git", *self.words))


RunGit = Callable[[GitCall, Sequence[int], Awaitable[None]], Awaitable[tuple[int, str]]]
"""Judges a call and runs it with three descriptors until it ends, or its caller has ended; gives its exit status, and
what is to be said of one that did not run."""


class _RefusedError(Exception):
    """A call that is not looked at further; says why."""


class GitBroker:
    """Listens for calls of git in a private `folder`, of which commands see what `mounts` says.

    `given` is the environment of all commands, and of git where `run` runs it.
    """

    def __init__(self, folder: Path, git: str, run: RunGit, given: Mapping[str, str]) -> None:
        self._folder = folder
        self._git = git
        self._run = run
        self._given = given
        self._running = asyncio.Semaphore(_MOST_RUNNING)
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def mounts(self) -> tuple[tuple[str, str], ...]:
        """Pair each path that a command sees with what is shown there."""
        return (
            (self._git, str(self._folder / "git")),
            (INSIDE, str(self._folder)),
            (f"{INSIDE}/{_REAL}", self._git),
        )

    def open(self) -> None:
        """Begin to listen. Raises `OSError`."""
        make_private_folder(self._folder / "real")
        values = {"real": _REAL, "client": _CLIENT, "socket": _SOCKET}
        inside = {name: f"{INSIDE}/{value}" for name, value in values.items()}
        shim = _SHIM.format(reads="|".join(_READS.split()), python=shlex.quote(sys.executable), **inside)
        write_private(self._folder / "git", shim.encode(), mode=0o755)
        write_private(self._folder / _CLIENT, Path(git_client.__file__).read_bytes(), mode=0o644)
        write_private(self._folder / _REAL, b"", mode=0o644)
        with contextlib.suppress(FileNotFoundError):
            (self._folder / _SOCKET).unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # By a descriptor: the path of a socket is short, that of a folder need not be.
            descriptor = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
            try:
                listening.bind(f"/proc/self/fd/{descriptor}/{_SOCKET}")
            finally:
                os.close(descriptor)
            listening.listen(_MOST_WAITING)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        self._listening = listening
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def close(self) -> None:
        """Take no more calls, and end what runs."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None
            with contextlib.suppress(OSError):
                (self._folder / _SOCKET).unlink()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            caller = listening.accept()[0]
            caller.setblocking(False)
            if len(self._tasks) >= _MOST_WAITING:
                caller.close()
                return
            task = asyncio.ensure_future(self._serve(caller))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, caller: socket.socket) -> None:
        descriptors: list[int] = []
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_SECONDS):
                call = await self._read(caller, descriptors)
            async with self._running:
                status, said = await self._run(call, descriptors, _gone(caller))
            text = f"git: {said}\n" if said else ""
            await loop.sock_sendall(caller, f"{status}\n{text}".encode(errors="replace"))
        except _RefusedError as refused:
            with contextlib.suppress(OSError):
                await loop.sock_sendall(caller, f"{_FAILED}\ngit: {refused}\n".encode(errors="replace"))
        except (OSError, TimeoutError):
            pass  # a caller that breaks off has no other consequence
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            caller.close()

    async def _read(self, caller: socket.socket, descriptors: list[int]) -> GitCall:
        """Read a message; the `descriptors` that came are kept there in any case."""
        loop = asyncio.get_running_loop()
        size = await _receive(caller, descriptors)
        for descriptor in descriptors:
            _check(descriptor)
        body = b""
        while len(body) < size:
            part = await loop.sock_recv(caller, size - len(body))
            if not part:
                raise _RefusedError("the call broke off")
            body += part
        cwd, count, *parts = (*body.split(b"\0")[:-1], b"", b"")[: max(2, body.count(b"\0"))]
        if not count.isdigit() or not int(count) <= min(len(parts), _MOST_WORDS):
            raise _RefusedError("the call cannot be read")
        pairs = (os.fsdecode(part).partition("=") for part in parts[int(count) :])
        words = tuple(map(os.fsdecode, parts[: int(count)]))
        left_out = _SAME if _REACHES_OTHERS.intersection(words) else _SAME | _OF_OTHERS
        left_out = left_out if _OPENS_AN_EDITOR.intersection(words) else left_out | _EDITORS.keys()
        calls = ((name, value) for name, _, value in pairs if name not in left_out)
        variables = {name: value for name, value in calls if self._given.get(name) != value}
        taken = (name in _TAKEN_ALONG or value in _EDITORS.get(name, ()) for name, value in variables.items())
        if odd := next((name for name, along in zip(variables, taken, strict=True) if not along), None):
            raise _RefusedError(f"Treadle does not take the variable {odd} along. Run it without.")
        credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return GitCall(
            words=words, cwd=os.fsdecode(cwd), variables=variables, process=_CREDENTIALS.unpack(credentials)[0]
        )


async def _receive(caller: socket.socket, descriptors: list[int]) -> int:
    """Receive the length of the message with three descriptors, which get numbers of their own."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(caller, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(caller)
    room = socket.CMSG_LEN(8 * struct.calcsize("i"))
    data, ancillary, flags, _ = caller.recvmsg(_LENGTH, room, socket.MSG_CMSG_CLOEXEC)
    received = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received.frombytes(content[: len(content) - len(content) % received.itemsize])
    try:
        for number in received:
            descriptors.append(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FROM))  # noqa: PERF401 - each is to be closed
    finally:
        for number in received:
            os.close(number)
    whole = len(descriptors) == 3 and not flags & socket.MSG_CTRUNC and data.isdigit()
    if not whole or not 0 < int(data) <= _MOST_BYTES:
        raise _RefusedError("the call cannot be read")
    return int(data)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


def _check(descriptor: int) -> None:
    """Refuse what could carry more than bytes: a folder, a socket, or a descriptor without access."""
    kind = os.fstat(descriptor).st_mode
    plain = stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)
    if not plain or fcntl.fcntl(descriptor, fcntl.F_GETFL) & _ONLY_PATH:
        raise _RefusedError("only files, pipes and terminals are handed on")


async def _gone(caller: socket.socket) -> None:
    """Wait until the caller has ended; whatever else it sends counts as that."""
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_recv(caller, 1)
