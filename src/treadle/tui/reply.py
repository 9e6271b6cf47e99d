"""The reply that streams: what of it is not in the scrollback yet."""

from msgspec import Struct, field
from msgspec.structs import replace

from treadle.present.prose import Growing
from treadle.protocol.notifications import CallDelta

_KEPT_THOUGHT = 600
_KEPT_ARGUMENT = 120
_CHARACTERS_PER_TOKEN = 4
_LEAST_TIME = 0.5


class LiveThinking(Struct, frozen=True, kw_only=True):
    """Reasoning that still grows: its end, its size in characters, and when it began."""

    end: str = ""
    size: int = 0
    began: float | None = None


LIVE = frozenset({"diff", "patch", "content"})
"""Parameters that are shown as they stream."""

_KEPT_BODY = 2_000


class LiveCall(Struct, frozen=True, kw_only=True):
    """A call that the model is writing; `argument` is the first parameter with a text, as far as it is known.

    `body` is the end of a further parameter with a name of `LIVE`: an edit as it streams.
    """

    index: int
    name: str
    parameter: str = ""
    argument: str = ""
    body: str = ""
    size: int = 0


class Reply(Struct, frozen=True, kw_only=True):
    """The reply that streams: `growing` is not in the scrollback yet; `printed` when an earlier part is.

    `size` is how many characters of all kinds came so far, `began` when the first did.
    """

    growing: Growing = field(default_factory=Growing)
    printed: bool = False
    thinking: LiveThinking = LiveThinking()
    writing: LiveCall | None = None
    size: int = 0
    began: float | None = None

    @property
    def text(self) -> str:
        """The part of the answer that is not in the scrollback yet."""
        return self.growing.text

    @property
    def tokens(self) -> int:
        """About how many tokens came so far."""
        return self.size // _CHARACTERS_PER_TOKEN

    def speed(self, tokens: int, at: float | None) -> float:
        """Give how many of so many tokens came in a second; 0 where the time is not known or too short to say."""
        took = 0.0 if at is None or self.began is None else at - self.began
        return tokens / took if took >= _LEAST_TIME else 0.0


def came(reply: Reply, text: str, at: float | None) -> Reply:
    """Count a piece of whatever kind, heard `at`."""
    return replace(reply, size=reply.size + len(text), began=at if reply.began is None else reply.began)


def think(thinking: LiveThinking, text: str, at: float | None) -> LiveThinking:
    """Add what the model thinks, heard `at`."""
    return LiveThinking(
        began=thinking.began if thinking.size else at,
        end=(thinking.end + text)[-_KEPT_THOUGHT:],
        size=thinking.size + len(text),
    )


def write(writing: LiveCall | None, notification: CallDelta) -> LiveCall:
    """Add to the call that the model writes."""
    if (
        writing is None
        or writing.index != notification.index
        or (notification.name and notification.name != writing.name)
    ):
        writing = LiveCall(index=notification.index, name=notification.name)
    argument = writing.argument
    if notification.parameter in (writing.parameter, "") or not writing.parameter:
        argument = (argument + notification.text)[:_KEPT_ARGUMENT]
    body = (writing.body + notification.text)[-_KEPT_BODY:] if notification.parameter in LIVE else writing.body
    return replace(
        writing,
        parameter=writing.parameter or notification.parameter,
        argument=argument,
        body=body,
        size=writing.size + len(notification.text),
    )
