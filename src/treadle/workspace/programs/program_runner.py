"""Run a program that calls tools: it says what it calls on standard output, and reads what came of it on its input.

Run as `python -s -S -P program_runner.py`, where nothing else can be reached. Each line is a JSON object. The first one
that is read has the `code`, the `tools` with their required parameters, and the bound on `tasks`. Then `calls` are
written, all that the program waits for, and their `results` are read; at the end `error`, which is empty for none, and
`why`, which says it in a line.
What the program prints goes to standard error. The same results make the same program do the same: the clock of its
event loop moves only where it sleeps, and chance begins alike each time.
"""

import ast
import asyncio
import asyncio.base_events
import inspect
import json
import linecache
import os
import random
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

_NAME = "<program>"
_MOST_AT_ONCE = 32
_MEMORY, _PRINTED, _SECONDS = 1024**3, 16 * 1024**2, 300
_MOST_FRAMES = 10


class _ToolError(Exception):
    """A call that did not succeed, with what the tool says of that."""


_ToolError.__name__ = _ToolError.__qualname__ = "ToolError"


class _StuckError(Exception):
    """Nothing is left that could go on."""


class _Outward:
    """Makes calls: those that the program waits for at one time together."""

    def __init__(self, read: IO[bytes], write: IO[bytes]) -> None:
        self._read = read
        self._write = write
        self.waiting: list[tuple[str, Mapping[str, Any], asyncio.Future[str]]] = []

    def say(self, what: Mapping[str, Any]) -> None:
        """Write a line."""
        self._write.write(json.dumps(what).encode() + b"\n")
        self._write.flush()

    def hear(self) -> Any:
        """Read a line; the program ends with its input."""
        line = self._read.readline()
        if not line:
            os._exit(1)
        return json.loads(line)

    def exchange(self) -> None:
        """Make the calls that are waited for, and give the program what came of them."""
        calls, self.waiting = self.waiting[:_MOST_AT_ONCE], self.waiting[_MOST_AT_ONCE:]
        self.say({"calls": [{"name": name, "arguments": arguments} for name, arguments, _ in calls]})
        for (_, _, future), result in zip(calls, self.hear()["results"], strict=True):
            if future.done():
                continue
            if result["failed"]:
                future.set_exception(_ToolError(result["text"]))
            else:
                future.set_result(result["text"])


class _Loop(asyncio.base_events.BaseEventLoop):
    """An event loop without sockets, whose calls are made when nothing else can go on."""

    def __init__(self, outward: _Outward) -> None:
        super().__init__()
        self._outward = outward
        self._now = 0.0
        self._selector = self

    def time(self) -> float:
        """Give the seconds that the program slept."""
        return self._now

    def select(self, timeout: float | None) -> Sequence[Any]:
        """Let time pass, or calls be made."""
        if timeout is not None and timeout <= 0:
            return ()
        if self._outward.waiting:
            self._outward.exchange()
        elif timeout is None:
            raise _StuckError
        else:
            time.sleep(timeout)
            self._now += timeout
        return ()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # noqa: ARG002 - the loop's shape
        """Do it at once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the program's
            future.set_exception(error)
        return future

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """It never sleeps where something could wake it."""


def _functions(outward: _Outward, tools: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Give each tool as a function, and all of them by name."""

    async def tool(name: str, /, *given: Any, **arguments: Any) -> str:
        if name not in tools:
            raise _ToolError(f"A program has no tool {name!r}. It has these: {', '.join(tools)}.")
        if len(given) > len(tools[name]):
            raise TypeError(
                f"{name} takes at most {len(tools[name])} arguments without names: {', '.join(tools[name])}"
            )
        said = {**dict(zip(tools[name], given, strict=False)), **arguments}
        json.dumps(said)  # what cannot be said fails here, where the program calls
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        outward.waiting.append((name, said, future))
        return await future

    def named(name: str) -> Callable[..., Any]:
        async def function(*given: Any, **arguments: Any) -> str:
            return await tool(name, *given, **arguments)

        function.__name__ = function.__qualname__ = name
        return function

    return {"tool": tool, **{name: named(name) for name in tools if name.isidentifier()}}


def _run(code: str, names: dict[str, Any], loop: _Loop) -> None:
    compiled = compile(code, _NAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    def run(main: Any, **_: Any) -> Any:
        if loop.is_running():
            raise RuntimeError("asyncio.run cannot be called beside an await at the top: write `await` in its place")
        return loop.run_until_complete(main)

    asyncio.run = run
    found = eval(compiled, names)  # noqa: S307 - it is what this is for, and nothing is in reach
    if inspect.iscoroutine(found):
        loop.run_until_complete(found)
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


def _trouble(error: BaseException) -> str:
    """Say what went wrong, with the lines of the program alone."""
    if isinstance(error, _StuckError):
        return "It waits for something that never comes."
    if isinstance(error, SystemExit):
        return "" if error.code in (None, 0) else f"It ended itself: exit({error.code!r})."
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == _NAME]
    where = traceback.format_list(frames[-_MOST_FRAMES:])
    what = traceback.format_exception_only(error)
    return "".join(["Traceback (most recent call last):\n", *where, *what] if where else what).rstrip()


def _why(error: BaseException) -> str:
    """Say it in a line: of what an error says, which may be the whole output of a command, the first."""
    if isinstance(error, (_StuckError, SystemExit)):
        return _trouble(error)
    first = next(iter(str(error).strip().splitlines()), "")
    return ": ".join(filter(None, (type(error).__name__, first)))


def _warned(message: Any, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> str:
    """Name the line of a warning where it is one of the program."""
    where = f"{filename}:{lineno}: " if filename == _NAME else ""
    return f"{where}{category.__name__}: {message}\n"


def _show_lost(_: Any, context: Mapping[str, Any]) -> None:
    """Print what went wrong in a task that nothing waited for."""
    error = context.get("exception")
    print("\n".join([context["message"], *([] if error is None else [_trouble(error)])]))  # noqa: T201 - its own output


def _bounded(tasks: int) -> None:
    bounds = (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _PRINTED),
        (resource.RLIMIT_CPU, _SECONDS),
        (resource.RLIMIT_NPROC, tasks),
        (resource.RLIMIT_CORE, 0),
    )
    for which, most in bounds:
        _, hard = resource.getrlimit(which)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (least, least))


def main() -> None:
    """Run the program that comes first."""
    outward = _Outward(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    begin = outward.hear()
    _bounded(begin["tasks"])
    sys.stdout.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    loop = _Loop(outward)
    loop.set_exception_handler(_show_lost)
    asyncio.set_event_loop(loop)
    code = begin["code"]
    linecache.cache[_NAME] = (len(code), None, code.splitlines(keepends=True), _NAME)
    warnings.formatwarning = _warned
    random.seed(0)
    names = {"__name__": "__main__", "asyncio": asyncio, "json": json, "ToolError": _ToolError}
    trouble = why = ""
    try:
        _run(code, {**names, **_functions(outward, begin["tools"])}, loop)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the program's, and is told
        trouble, why = _trouble(error), _why(error)
    try:
        sys.stdout.flush()
    finally:
        outward.say({"error": trouble, "why": why})
        os._exit(0)


if __name__ == "__main__":
    main()
