"""For tests of your own: a model that plays a script, and recorded sessions that are played again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from treadle.engine.replay.tape import play, read_tape
from treadle.providers.scripted.provider import ScriptedProvider
from treadle.providers.scripted.script import MakeCall, SayText, Script, ScriptItem, Turn

ScriptedReply: TypeAlias = str | ScriptItem | Turn | Sequence[str | ScriptItem]
"""What the model says in one reply: a text, a call, or several of these."""


def scripted_model(*replies: ScriptedReply) -> ScriptedProvider:
    """Make a model that gives these replies, one to each request, for `Treadle(model=...)`.

    Its `requests` are what it was sent, its `violations` the requests for which the script has no reply.
    """
    return ScriptedProvider(Script(turns=tuple(map(_turn, replies))))


def call(name: str, /, **arguments: Any) -> MakeCall:
    """Make a call of a tool, as an item of a scripted reply."""
    return MakeCall(name=name, arguments=arguments)


def replay_tape(path: str | Path) -> None:
    """Replay a tape that `treadle export ID --as-test` wrote; raises `AssertionError` with the first difference."""
    difference = play(read_tape(Path(path).read_bytes())).difference
    if difference is not None:
        raise AssertionError(
            f"event {difference.seq} ({difference.type}) {difference.path}: recorded {difference.recorded}, "
            f"rebuilt {difference.rebuilt}. {difference.why}".strip()
        )


def _turn(reply: ScriptedReply) -> Turn:
    match reply:
        case Turn():
            return reply
        case str():
            return Turn(items=(SayText(text=reply),))
        case Sequence():
            return Turn(items=tuple(SayText(text=item) if isinstance(item, str) else item for item in reply))
        case _:
            return Turn(items=(reply,))
