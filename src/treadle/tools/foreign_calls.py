"""Calls of functions that others wrote: what one raises ends no more than its call."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RaisedByFunction:
    """What a function raised, whatever kind it is of: the end of the program and a cancellation of its own, too."""

    error: BaseException


async def call_foreign(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    """Give what a function returned, or `RaisedByFunction`; raises only `CancelledError`, where this is cancelled."""
    if not inspect.iscoroutinefunction(function):
        return await asyncio.to_thread(_called, function, values)
    # Gathering tells a cancel of the call from one that the function raises by itself, and from one that it swallows.
    (came,) = await asyncio.gather(_awaited(function, values))
    return came


async def _awaited(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    try:
        return await function(**values)
    except BaseException as error:  # noqa: BLE001 - raised out of a task, some kinds would end the event loop
        return RaisedByFunction(error)


def _called(function: Callable[..., Any], values: Mapping[str, Any]) -> object:
    try:
        return function(**values)
    except BaseException as error:  # noqa: BLE001 - it is told where the call is
        return RaisedByFunction(error)
