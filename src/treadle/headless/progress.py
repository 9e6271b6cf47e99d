"""What happens, as lines for a person who reads along."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    Notification,
    PhaseChanged,
    PromptDelivered,
    QueueChanged,
    TurnOutcome,
    TurnResumed,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.tools import Flow, ToolKind

if TYPE_CHECKING:
    from treadle.present.item_lines import ProgressLine, ProgressLines

_KIND = "headless"
_LOOKS = (ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK, ToolKind.FETCH)


class Progress:
    """Says in lines what happens, without the answer: what may be it is held back until something comes after it."""

    def __init__(self) -> None:
        self._begun: ProgressLines | None = None
        self._before: list[Notification] = []
        self._held: Sequence[str] = ()
        self._text = ""
        self.last = ""
        self.may_change = False  # whether something ran that may change files, as far as that is known

    def take(self, notification: Notification) -> list[str]:
        """Give the lines that can be shown by now."""
        self.may_change |= _may_change(notification)
        if self._begun is None and _begins(notification):
            self._before.append(notification)
            return []
        lines = self._lines(notification)
        if not lines:
            return []
        shown = [*self._held]
        self.last = self._text or self.last
        self._text = "".join(line.text for line in lines if not line.sign)
        cut = len(lines) if lines[-1].sign else len(lines) - 1
        self._held = [line.text for line in lines[cut:]]
        return [*shown, *(line.signed for line in lines[:cut])]

    def _lines(self, notification: Notification) -> "list[ProgressLine]":
        if self._begun is None:
            from treadle.present.item_lines import ProgressLines

            self._begun = ProgressLines(_KIND)
            for one in self._before:
                self._begun.take(Stamped(notification=one))
        return self._begun.take(Stamped(notification=notification))

    def finish(self, answer: str = "") -> list[str]:
        """Give what is still held back, unless it is the answer, or a part of it."""
        held, text = self._held, self._text
        self._held, self._text = (), ""
        if text and f"\n\n{text}\n\n" in f"\n\n{answer.strip()}\n\n":
            return []
        self.last = text or self.last
        return [*held]


def _may_change(notification: Notification) -> bool:
    """Whether something runs that may change files; what another program did with the turn is not known."""
    match notification:
        case CallChanged(status=CallStatus.RUNNING | CallStatus.FINISHED, flow=Flow.RUN, kind=kind):
            return kind not in _LOOKS
        case TurnResumed():
            return True
        case _:
            return False


def _begins(notification: Notification) -> bool:
    """Whether it belongs to the beginning of a turn, of which nothing is said: the first request waits for nothing."""
    match notification:
        case PhaseChanged() | TurnStarted() | QueueChanged():
            return True
        case PromptDelivered(by=by, enclosed=enclosed):
            return not by and not enclosed
        case _:
            return False


def summary_lines(outcome: TurnOutcome, *, may_change: bool = True) -> Iterator[str]:
    """Sum up a turn: the files, the tokens, the money, what stopped it; without `may_change` nothing ran that could."""
    from treadle.present.escape import exact_line
    from treadle.present.figures import by_name, unseen_words
    from treadle.present.words import spent

    for change in by_name(outcome.changes):
        yield f"  {exact_line(change.path)} (+{change.added} -{change.removed})"
    if outcome.unseen:
        yield f"# {unseen_words(outcome.unseen)}"
    elif outcome.changes and not outcome.exact:
        yield "# at least these files changed: no checkpoint shows what else commands changed"
    known = outcome.exact or not (may_change or outcome.unseen)
    if known and not outcome.changes and outcome.stop is TurnStop.END_TURN:
        yield "# no file was changed"  # whatever the model says of that
    usage = outcome.usage
    cached = f", {usage.cache_read_tokens} from cache" if usage.cache_read_tokens else ""
    about = "about " if usage.estimated else ""
    paid = spent(usage, outcome.cost)
    tokens = f"{about}{usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens} tokens in{cached}"
    steps = "1 step" if outcome.steps == 1 else f"{outcome.steps} steps"
    yield f"# {outcome.stop}: {steps}, {tokens}, {usage.output_tokens} out, {paid}"
    if outcome.denied:
        one = outcome.denied == 1
        calls, them = ("1 call was", "it") if one else (f"{outcome.denied} calls were", "them")
        yield f"# {calls} denied because nobody was there to approve {them}; see --mode"
    if outcome.why:
        yield f"# stopped by {outcome.why}"


def turns_together(outcomes: Sequence[TurnOutcome]) -> TurnOutcome:
    """Sum up turns that followed on each other by themselves; the last one says how they ended."""
    whole = outcomes[0]
    for one in outcomes[1:]:
        whole = replace(
            one,
            steps=whole.steps + one.steps,
            usage=whole.usage + one.usage,
            cost=None if whole.cost is None or one.cost is None else whole.cost + one.cost,
            changes=(*whole.changes, *one.changes),
            denied=whole.denied + one.denied,
            exact=whole.exact
            and one.exact
            and not {each.path for each in whole.changes} & {each.path for each in one.changes},
        )
    return whole
