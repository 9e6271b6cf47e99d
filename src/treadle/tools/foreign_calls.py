"""Calls of functions that others wrote: what one raises ends no more than its call, and nobody waits for a lost one."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import Any


@dataclass(frozen=True, slots=True)
class RaisedByFunction:
    """What a function raised, whatever kind it is of: the end of the program and a cancellation of its own, too."""

    error: BaseException


async def call_foreign(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    """Give what a function returned, or `RaisedByFunction`; raises only `CancelledError`, where this is cancelled.

    One that is not `async` runs in a thread that cannot be ended. It does not keep the program from its end.
    """
    if not inspect.iscoroutinefunction(function):
        return await _in_thread(function, values)
    # Gathering tells a cancel of the call from one that the function raises by itself, and from one that it swallows.
    (came,) = await asyncio.gather(_awaited(function, values))
    return came


async def _awaited(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    try:
        return await function(**values)
    except BaseException as error:  # noqa: BLE001 - raised out of a task, some kinds would end the event loop
        return RaisedByFunction(error)


async def _in_thread(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    loop = asyncio.get_running_loop()
    waits: asyncio.Future[object] = loop.create_future()

    def settle(came: object) -> None:
        if not waits.done():
            waits.set_result(came)

    def work() -> None:
        came: object
        try:
            came = function(**values)
        except BaseException as error:  # noqa: BLE001 - it is told where the call is
            came = RaisedByFunction(error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, came)

    # Not `asyncio.to_thread`, whose threads are waited for at the end of the program.
    Thread(target=copy_context().run, args=(work,), name="treadle-function", daemon=True).start()
    return await waits
