"""Models: requests, streams, usage and the errors of a provider."""

from enum import StrEnum
from typing import TypeAlias

from treadle.protocol.base import Record, Tagged
from treadle.protocol.messages import Message, WireData
from treadle.protocol.tools import ToolSpec
from treadle.protocol.usage import Usage

_CENT = 0.01
_LEAST = 0.0001
"""The least amount that is shown; what is not nothing never looks like it."""
_SLIP = 1e-9
"""By what a sum of amounts may be off."""


class ToolProtocol(StrEnum):
    """How calls are written: by the provider's function calls, or as XML in the text."""

    NATIVE = "native"
    XML = "xml"


class Spent(Record, frozen=True, kw_only=True):
    """What was spent: US dollars as far as prices are known, and tokens of every kind; `estimated` if only about."""

    cost: float = 0.0
    tokens: int = 0
    estimated: bool = False

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            cost=self.cost + other.cost,
            tokens=self.tokens + other.tokens,
            estimated=self.estimated or other.estimated,
        )


def money(spent: float | None, *, unpriced: bool = False, estimated: bool = False, fine: bool = False) -> str:
    """Write an amount of US dollars: $0.09, $1,200.00, <$0.01, about $0.0042, over $0.09, cost unknown.

    `unpriced`: a part of it is not known, and the rest is not rounded up; None: nothing of it is. `estimated`: a part
    is our own estimate. Less than a cent is shown as it is then. `fine` shows parts of a cent.
    """
    fine = fine or ((estimated or unpriced) and spent is not None and spent < _CENT)
    spent = _rounded_down(spent, places=4 if fine else 2) if spent and unpriced else spent
    if spent is None or (unpriced and not spent):
        return "cost unknown"
    amount = _dollars(spent, fine=fine)
    about = f"about {amount}" if estimated and spent else amount
    return f"over {about}" if unpriced else about


def _rounded_down(amount: float, places: int) -> float:
    shown = round(amount, places)
    return shown if shown <= amount + _SLIP else round(shown - 10**-places, places)


def _dollars(amount: float, *, fine: bool) -> str:
    if not fine or amount <= 0 or amount >= 1:
        return "<$0.01" if 0 < amount < _CENT else f"${amount:,.2f}"
    exact = f"${max(amount, _LEAST):.4f}"
    return exact.removesuffix("00")


class PriceStep(Record, frozen=True, kw_only=True):
    """What a request costs, all of it, whose input has more than `above` tokens."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None


class Prices(Record, frozen=True, kw_only=True):
    """US dollars for a million tokens; `steps` are those of long requests, the shortest first.

    `cache_write_hour` is what is written to the cache for an hour, not for some minutes.
    `estimated`: they are those of a relative of the model, whose own are not known.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None
    steps: tuple[PriceStep, ...] = ()
    estimated: bool = False

    def of(self, input_tokens: int) -> "Prices | PriceStep":
        """Give what a request with so many tokens of input is billed at, those of the cache included."""
        return next((step for step in reversed(self.steps) if input_tokens > step.above), self)


class Searches(Record, frozen=True, kw_only=True):
    """Searches of the web that the provider may make by itself; None is unknown.

    `price` is US dollars for a thousand, `most` bounds those of one request.
    """

    price: float | None = None
    most: int | None = None


class ModelSpec(Record, frozen=True, kw_only=True):
    """What is known of a model; None is unknown, never a guess. Windows and limits are in tokens.

    `searches` is given where the provider may search the web while the model answers. `released` and `retires` are days
    (ISO), `successor` is the name that the provider gives for the time after; empty where unknown. Where the model is
    not known, `like` is the one, `provider/model`, whose figures stand here in its place.
    """

    provider: str
    name: str
    context_window: int | None = None
    max_output: int | None = None
    prices: Prices | None = None
    native_tools: bool = True
    images: bool | None = None
    thinking: bool = False
    documents: bool | None = None
    searches: Searches | None = None
    released: str = ""
    retires: str = ""
    successor: str = ""
    like: str = ""

    @property
    def ref(self) -> str:
        """The name a user types: `provider/model`."""
        return f"{self.provider}/{self.name}"


class ModelChoice(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A model to call, `provider/name`, how its calls are written, and how many tokens it may think."""

    model: str
    tool_protocol: ToolProtocol
    thinking_budget: int | None = None


class ModelRequest(Record, frozen=True, kw_only=True):
    """One call of a model, free of any wire format. `tools` is empty where calls are written as XML.

    `web_search` lets the provider search the web by itself, where it can.
    """

    id: str
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    thinking_budget: int | None = None
    web_search: bool = False


class ErrorKind(StrEnum):
    """Why a model call failed; of `budget`: it was not sent, as it can cost more than is left."""

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    BALANCE = "balance"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONTEXT_TOO_LONG = "context_too_long"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    CONTENT_FILTER = "content_filter"
    NETWORK = "network"
    TIMEOUT = "timeout"
    MALFORMED_STREAM = "malformed_stream"
    EMPTY_REPLY = "empty_reply"
    CANCELLED = "cancelled"
    BUDGET = "budget"


RETRYABLE = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.NETWORK,
        ErrorKind.TIMEOUT,
        ErrorKind.MALFORMED_STREAM,
        ErrorKind.EMPTY_REPLY,
    }
)


class RefusedPart(StrEnum):
    """A part of a conversation that a provider refuses; without it the request can be sent once more."""

    IMAGE = "image"
    EVERY_IMAGE = "every_image"
    DOCUMENT = "document"
    THINKING = "thinking"
    TOOLS = "tools"


class ModelError(Record, frozen=True, kw_only=True):
    """A failed model call: what, why (status, request id), and when to try again (`retry_after`, seconds).

    `window` is the model's context window in tokens, where an overflow names it. `fix` says what helps where more is
    known of that than the kind says. `retries` bounds how often trying again is of use, None where only the session's
    limit does. `refused` is the part of the conversation that the provider does not take. `paced`: nothing was sent, as
    the provider's last answers say that its limit is used up until then.
    """

    kind: ErrorKind
    message: str
    status: int | None = None
    request_id: str = ""
    retry_after: float | None = None
    window: int | None = None
    fix: str = ""
    retries: int | None = None
    refused: RefusedPart | None = None
    paced: bool = False

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE


class ReplyStop(StrEnum):
    """Why the model stopped writing."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"


class StreamText(Tagged, frozen=True, kw_only=True, tag="text"):
    """The next piece of text."""

    text: str


class StreamThinking(Tagged, frozen=True, kw_only=True, tag="thinking"):
    """The next piece of reasoning."""

    text: str


class StreamThinkingDone(Tagged, frozen=True, kw_only=True, tag="thinking_done"):
    """A block of reasoning is whole; `redacted` is the encrypted form where there is no text.

    `searched` says that the provider searched the web: the text tells what for, and what was found.
    """

    signature: str = ""
    redacted: str = ""
    wire: WireData | None = None
    searched: bool = False


class StreamCallStart(Tagged, frozen=True, kw_only=True, tag="call_start"):
    """A native call begins; `index` tells the calls of one reply apart."""

    index: int
    name: str
    wire_id: str = ""


class StreamCallArguments(Tagged, frozen=True, kw_only=True, tag="call_arguments"):
    """The next piece of a call's argument JSON."""

    index: int
    text: str


class StreamCallDone(Tagged, frozen=True, kw_only=True, tag="call_done"):
    """A call's argument JSON is complete as far as the provider says."""

    index: int
    wire: WireData | None = None


class StreamUsage(Tagged, frozen=True, kw_only=True, tag="usage"):
    """The provider works on the request and will bill it: what it has said so far of what that uses, maybe nothing."""

    usage: Usage = Usage()


class StreamStop(Tagged, frozen=True, kw_only=True, tag="stop"):
    """The reply is whole. The last item of a stream that succeeded."""

    reason: ReplyStop
    usage: Usage


class StreamFailure(Tagged, frozen=True, kw_only=True, tag="failure"):
    """The last item of a stream that failed; `usage` is what is known to have been billed."""

    error: ModelError
    usage: Usage = Usage()


StreamEvent: TypeAlias = (
    StreamText
    | StreamThinking
    | StreamThinkingDone
    | StreamCallStart
    | StreamCallArguments
    | StreamCallDone
    | StreamUsage
    | StreamStop
    | StreamFailure
)
