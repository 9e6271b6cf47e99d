"""A model that reacts to what it reads: each reply is the next value of a generator, which gets the next request."""

from collections.abc import Generator
from typing import Any, TypeAlias

from treadle.providers.scripted.player import Performance, perform, refused
from treadle.providers.scripted.script import MakeCall, Pace, Refuse, SayText, ScriptItem, Turn
from treadle.providers.scripted.seen_requests import SeenRequest

Moves: TypeAlias = Generator[Turn, SeenRequest, None]
"""Replies, each answered by the request that follows it."""

_CHARACTERS_PER_TOKEN = 4


class UnexpectedError(Exception):
    """The model read something else than what its work needs."""


def reply(*items: ScriptItem | str) -> Turn:
    """One reply; a string is text."""
    return Turn(items=tuple(SayText(text=item) if isinstance(item, str) else item for item in items))


def call(name: str, **arguments: Any) -> MakeCall:
    """A call of a tool."""
    return MakeCall(name=name, arguments=arguments)


def run(command: str, **arguments: Any) -> MakeCall:
    """A call of execute_command."""
    return call("execute_command", command=command, **arguments)


def need(seen: SeenRequest, *texts: str) -> None:
    """Fail unless the last results hold these texts: what a person would expect to be there."""
    missing = [text for text in texts if text not in seen.last_result]
    if missing:
        raise UnexpectedError(f"the results lack {missing}: {seen.last_result[:3000]!r}")


def know(seen: SeenRequest, *texts: str) -> None:
    """Fail unless these texts can be read anywhere: what was read before need not come a second time."""
    missing = [text for text in texts if text not in seen.conversation]
    if missing:
        raise UnexpectedError(f"nothing tells of {missing}: {seen.last_result[:3000]!r}")


class ReactingModel:
    """Plays the moves of one session and keeps a transcript of them in `said`, for the report of a failure.

    With a `window`, in tokens, it refuses what does not fit, as providers do; `most` bounds the requests that it
    answers. `problems` is what it did not expect.
    """

    def __init__(self, moves: Moves, *, window: int | None = None, most: int = 500) -> None:
        self.model = "scripted"
        self.said: list[str] = []
        self.problems: list[str] = []
        self.requests = 0
        self.overflows = 0
        self._moves = moves
        self._window = window
        self._most = most
        self._begun = False

    def play(self, seen: SeenRequest) -> Performance:
        """Answer a request with the next reply."""
        self.requests += 1
        if self.requests > self._most:
            return self._fail(seen, f"more than {self._most} model calls")
        if self.problems:
            return refused(seen, self.problems[0])
        tokens = (len(seen.system) + len(seen.conversation)) // _CHARACTERS_PER_TOKEN
        if self._window is not None and tokens > self._window:
            self.overflows += 1
            self.said.append(f"refused {tokens} tokens")
            return _too_long(seen, tokens, self._window)
        try:
            turn = self._moves.send(seen) if self._begun else next(self._moves)
        except UnexpectedError as error:
            return self._fail(seen, str(error))
        except StopIteration:
            return self._fail(seen, f"another request came after the work was done: {seen.last_user[-2000:]!r}")
        self._begun = True
        self.said.append(_short(turn))
        return perform(turn, seen, Pace())

    def _fail(self, seen: SeenRequest, problem: str) -> Performance:
        self.problems.append(problem)
        return refused(seen, problem)


def _too_long(seen: SeenRequest, tokens: int, window: int) -> Performance:
    """Refuse a request as the Messages API does."""
    message = f"prompt is too long: {tokens} tokens > {window} maximum"
    return perform(reply(Refuse(status=400, message=message, code="context_length_exceeded")), seen, Pace())


def _short(turn: Turn) -> str:
    return " + ".join(str(item)[:300] for item in turn.items) or "(nothing)"
