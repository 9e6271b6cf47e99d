"""Context windows that were learned from a provider's own refusals, for models of which nothing else is known."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import msgspec

from treadle.app.places import data_directory
from treadle.engine.ports import Provider
from treadle.protocol.models import ModelRequest, StreamEvent, StreamFailure

Learn = Callable[[str, int], None]
"""Takes a model's own name at its provider, and its window in tokens."""

Ask = Callable[[str], Awaitable[None]]
"""Asks the provider what it says of a model with that name, where nothing else does."""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """The file: windows by the name a user types."""

    version: int = 1
    windows: dict[str, int] = {}


def windows_file() -> Path:
    """Where they are kept."""
    return data_directory() / "windows.json"


def learned_windows() -> dict[str, int]:
    """Give every window that was learned, by `provider/model`; a file that cannot be read counts as none."""
    try:
        return msgspec.json.decode(windows_file().read_bytes(), type=_Known).windows
    except (OSError, msgspec.MsgspecError):
        return {}


def learn_window(ref: str, window: int) -> None:
    """Keep a window; where it cannot be kept, the next refusal names it again."""
    from treadle.workspace.private_file import write_private

    known = learned_windows()
    if known.get(ref) != window:
        with suppress(OSError):
            write_private(windows_file(), msgspec.json.encode(_Known(windows={**known, ref: window})))


class LearningProvider:
    """The `Provider` port before another one: passes on what its provider says of a model that nobody else knows."""

    def __init__(self, inner: Provider, learn: Learn, ask: Ask) -> None:
        """`ask` is called before the second call of a model: by then it is one to work with, and it is not waited for
        before the first word.
        """
        self._inner = inner
        self._learn = learn
        self._ask = ask
        self._calls: Counter[str] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model; see the port."""
        self._calls[request.model] += 1
        if self._calls[request.model] == 2:
            await self._ask(request.model)
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, StreamFailure) and event.error.window is not None:
                    self._learn(request.model, event.error.window)
                yield event

    async def close(self) -> None:
        """Give back connections."""
        await self._inner.close()
