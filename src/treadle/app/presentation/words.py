"""Numbers and calls in a few words."""

from typing import assert_never

from msgspec.structs import replace

from treadle.app.presentation.escape import printable
from treadle.protocol.messages import Document, Image, ResultContent, Text
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import CallChanged, Phase, TurnStop
from treadle.protocol.permissions import Allowance
from treadle.protocol.tools import CallResult, FileChange, Outcome, ToolCall, ToolKind

_SHOWN_TITLE = 160
_SHOWN_REASON = 240


def clip(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def shorten(text: str, *, lines: int, characters: int) -> str:
    """Leave out the middle of a long text, and say how much; at most so many lines and characters stay."""
    kept = text.split("\n")
    if len(kept) > lines:
        half = lines // 2
        kept = [*kept[:half], f"… {len(kept) - 2 * half:,} more lines …", *kept[-half:]]
    short = "\n".join(kept)
    if len(short) <= characters:
        return short
    half = characters // 2
    return f"{short[:half]} … {len(short) - 2 * half:,} more characters … {short[-half:]}"


def plain(content: tuple[ResultContent, ...]) -> str:
    """Give the text of a content; what is no text is named."""
    return "\n".join(_block(block) for block in content)


def _block(block: ResultContent) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=media_type):
            return f"[{media_type}]"
        case Document(title=title, media_type=media_type):
            return f"[{title or media_type}]"


def title_of(changed: CallChanged) -> str:
    """Name a call on one line: what it does, or the tool and its first argument."""
    preview = changed.preview
    if preview is None:
        return call_title(changed.call)
    text = preview.title
    # What an edit shows in place of a diff is why it is refused; that is the reason of its failure.
    if preview.text and not preview.is_diff and changed.kind is not ToolKind.EDIT:
        text = f"{text} {preview.text}"
    return printable(clip(text, _SHOWN_TITLE))


def call_title(call: ToolCall) -> str:
    """Name a call by its tool and its first argument in words."""
    first = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return printable(clip(f"{call.name} {first}", _SHOWN_TITLE))


def note_of(kind: ToolKind, result: CallResult) -> str:
    """Say how a call went: the first line of why it failed, or how much came back."""
    text = plain(result.content).strip()
    if result.outcome in (Outcome.INTERRUPTED, Outcome.SKIPPED):
        return ""
    if result.outcome is not Outcome.OK:
        return printable(clip(text.partition("\n")[0], _SHOWN_REASON))
    if kind in (ToolKind.READ, ToolKind.SEARCH) and text:
        count = text.count("\n") + 1
        return "1 line" if count == 1 else f"{count:,} lines"
    return ""


def seen_from(root: str, change: FileChange) -> FileChange:
    """Name a changed file as seen from a folder."""
    return replace(change, path=change.path.removeprefix(f"{root}/")) if root else change


def changed_lines(changes: tuple[FileChange, ...]) -> str:
    """Sum up changed files: `2 files +12 -3`; empty for none."""
    if not changes:
        return ""
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    return f"{files} +{sum(one.added for one in changes)} -{sum(one.removed for one in changes)}"


def tokens(count: int) -> str:
    """Give a count of tokens: 950, 12.3k, 1.2M."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def money(spent: float, *, unpriced: bool) -> str:
    """Give a cost in US dollars; `unpriced` when a part of it is not known."""
    if unpriced and not spent:
        return "cost unknown"
    amount = f"${spent:.2f}" if spent >= 1 else f"${spent:.4f}"
    return f"over {amount}" if unpriced else amount


def span(seconds: float) -> str:
    """Give a span of time: 7s, 3m 05s, 2h 10m."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m {rest:02d}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"


def doing(phase: Phase) -> str:
    """Say what the session waits for."""
    match phase:
        case Phase.WAITING_FOR_EVENT:
            return "ready"
        case Phase.ASSEMBLING_CONTEXT:
            return "preparing"
        case Phase.AWAITING_LLM_RESPONSE:
            return "model works"
        case Phase.JUDGING:
            return "checking"
        case Phase.AWAITING_USER_CONFIRMATION:
            return "waits for you"
        case Phase.EXECUTING_TOOL:
            return "running"
        case Phase.COMPACTING:
            return "making room"
        case Phase.WAITING_TO_RETRY:
            return "waits to retry"
        case Phase.CANCELLING:
            return "stopping"


def ended(stop: TurnStop) -> str:
    """Say why a turn ended."""
    match stop:
        case TurnStop.END_TURN:
            return "done"
        case TurnStop.MAX_TURN_REQUESTS:
            return "stopped at the limit of steps"
        case TurnStop.REFUSAL:
            return "the model refused"
        case TurnStop.CANCELLED:
            return "interrupted"
        case TurnStop.ERROR:
            return "stopped by an error"
        case TurnStop.MISTAKES:
            return "stopped after repeated mistakes"
        case TurnStop.LOOP:
            return "stopped in a loop"
        case TurnStop.BUDGET:
            return "stopped by the budget"
        case TurnStop.TIME:
            return "stopped at the limit of time"


def facts_of(error: ModelError) -> str:
    """Say why a model call failed, with what the provider gave to find it by."""
    facts = [error.message.strip()]
    if error.status is not None:
        facts.append(f"HTTP {error.status}")
    if error.request_id:
        facts.append(f"request {error.request_id}")
    return ", ".join(facts)


def advice(kind: ErrorKind) -> str:
    """Say what a person can do about a failed model call without leaving the session."""
    match kind:
        case ErrorKind.AUTHENTICATION | ErrorKind.BALANCE:
            return "Check the provider's key and account, or use another model: /model PROVIDER/NAME."
        case ErrorKind.PERMISSION | ErrorKind.NOT_FOUND | ErrorKind.BAD_REQUEST:
            return "Check the model's name and the base URL, or use another model: /model PROVIDER/NAME."
        case ErrorKind.RATE_LIMIT | ErrorKind.OVERLOADED | ErrorKind.SERVER | ErrorKind.EMPTY_REPLY:
            return "Wait a while and say how to go on, or use another model: /model PROVIDER/NAME."
        case ErrorKind.NETWORK | ErrorKind.TIMEOUT | ErrorKind.MALFORMED_STREAM:
            return "Check the network and the base URL, then say how to go on."
        case ErrorKind.CONTEXT_TOO_LONG:
            return (
                "Go on here with a model with a larger window: /model PROVIDER/NAME, then say how to go on. "
                "Or start a new session, with smaller files or parts of them."
            )
        case ErrorKind.CONTENT_FILTER:
            return "Put the request differently."
        case ErrorKind.CANCELLED:
            return "Say how to go on."
        case _:
            assert_never(kind)


def allowance_of(allowance: Allowance) -> str:
    """Say what an allowance covers."""
    tool = f" with {allowance.tool}" if allowance.tool else ""
    if allowance.argv:
        words = " ".join(allowance.argv)
        return f"the command `{words}`" if allowance.exact else f"commands that begin with `{words}`"
    if allowance.path:
        return f"{'writing' if allowance.op == 'write' else 'reading'} {allowance.path}{tool}"
    return f"requests to {allowance.host}{tool}" if allowance.host else f"every call of {allowance.tool}"
