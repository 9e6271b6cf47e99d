"""What a person knows of a session: what is true of it now, and what of its items may still change."""

from collections.abc import Mapping

from msgspec import Struct, field

from treadle.present.items import CallItem, Item, Placed, TurnItem
from treadle.present.prose import Growing
from treadle.present.spending_words import Spending
from treadle.protocol.goals import GoalState, GoalStatus
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import ChildChanged, Phase, QueuedPrompt
from treadle.protocol.permissions import Allowance, Mode, Question
from treadle.protocol.tools import FileChange

_LEAST_TIME = 0.5
_CHARACTERS_PER_TOKEN = 4
_MOST_TOGETHER = 400


class Retry(Struct, frozen=True):
    """The wait before the next attempt, the `attempt`th of `most`; `at` is when it ends, in seconds since 1970.

    `resets`: it is for a limit of the provider, which the user agreed to wait for.
    """

    error: ModelError
    at: float | None
    attempt: int = 1
    most: int = 0
    resets: bool = False


class WayBack(Struct, frozen=True):
    """The user went back with event `seq`: what came after event `to` left the conversation."""

    seq: int
    to: int


class EndedTurn(Struct, frozen=True):
    """The end of a turn as it was when it came, and by their paths what is left of changes that were restored since.

    None where that is nothing.
    """

    placed: Placed
    left: Mapping[str, FileChange | None] = {}

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The files that it changed."""
        return self.placed.item.outcome.changes if isinstance(self.placed.item, TurnItem) else ()


class ReplyView(Struct, frozen=True, kw_only=True):
    """The reply that streams. `items` are the places of what it has said so far, its calls among them, by the hundreds.

    `tail` is prose that still grows, `thought` reasoning (`thinking` is all of it, since `began`), `writing` a call.
    `heard` says that pieces of it came: otherwise the whole message shows all of it. `size` is how many characters of
    all kinds came, the first of them at `began`.
    """

    heard: bool = False
    items: tuple[tuple[Placed, ...], ...] = ()
    growing: Growing = field(default_factory=Growing)
    tail: Placed | None = None
    thought: Placed | None = None
    thinking: str = ""
    thinking_since: float | None = None
    writing: Placed | None = None
    size: int = 0
    began: float | None = None

    def items_with(self, placed: Placed) -> tuple[tuple[Placed, ...], ...]:
        """Give its items with one more; a long reply takes time by its length, not by the square of it."""
        *full, last = self.items or ((),)
        return (*full, (*last, placed)) if len(last) < _MOST_TOGETHER else (*full, last, (placed,))

    @property
    def tokens(self) -> int:
        """About how many tokens came so far."""
        return self.size // _CHARACTERS_PER_TOKEN

    def speed(self, tokens: int, at: float | None) -> float:
        """Give how many of so many tokens came in a second; 0 where the time is not known or too short to say."""
        took = 0.0 if at is None or self.began is None else at - self.began
        return tokens / took if took >= _LEAST_TIME else 0.0


class SessionView(Struct, frozen=True, kw_only=True):
    """What is true of a session, as far as its notifications tell; times are seconds since 1970, None: not known.

    `root` is the workspace, as seen from which files are named. `version` rises with each notification; `known_at` is
    the one in which something changed that is no item. `places` is how many items have had a place, `seq` the last
    event told of, and `heard` when that happened. `active`: a turn goes on, the `started` one, with the number `turn`;
    that is put off by the time in which no program worked on it. `since` is when it came to what it does now, `asking`
    since when the person is asked, `waited` how long (s) they were asked before that in this turn. `received` are the
    tokens of the turn's replies, `speed` how many of the last one came in a second. `added` and `removed` count the
    changed lines of the session, and `files` its files, as its checkpoints did, `counted` is the event of the last one;
    or else (0) the lines are those that the ends of turns said. `stop` is how the last turn ended. `checklist` is
    Markdown, `listed` that this turn changed it.

    `calls` are the open ones at their places, `children` the subagents that work; `proposed` are calls of a reply that
    nobody heard and that is not whole yet: it says where they stand. `silent` are the places of those that show nothing
    yet, by the calls' ids, `copied` those of calls of this turn whose commands ran in a copy. While a reply is awaited
    (`awaiting`) what comes `beside` it waits for its end. `presented` is the result of the task that was shown already.
    `ends` are the last ends of turns that changed files, `ways` all ways back, and `cuts` those that count.
    """

    root: str = ""
    model: str = ""
    mode: Mode = Mode.ASK
    version: int = 0
    known_at: int = 0
    places: int = 0
    seq: int = 0
    phase: Phase = Phase.WAITING_FOR_EVENT
    active: bool = False
    turn: int = 0
    step: int = 0
    started: float | None = None
    heard: float | None = None
    since: float | None = None
    asking: float | None = None
    waited: float = 0.0
    received: int = 0
    speed: float = 0.0
    spending: Spending = Spending()
    counted: int = 0
    added: int = 0
    removed: int = 0
    files: int = 0
    stop: str | None = None
    retry: Retry | None = None
    questions: tuple[Question, ...] = ()
    queue: tuple[QueuedPrompt, ...] = ()
    held: tuple[QueuedPrompt, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    checklist: str = ""
    goal: GoalStatus | None = None
    listed: bool = False
    reply: ReplyView = ReplyView()
    calls: tuple[Placed, ...] = ()
    children: tuple[ChildChanged, ...] = ()
    proposed: tuple[CallItem, ...] = ()
    silent: Mapping[str, Placed] = {}
    copied: Mapping[str, Placed] = {}
    awaiting: bool = False
    beside: tuple[Item, ...] = ()
    presented: str = ""
    ends: tuple[EndedTurn, ...] = ()
    ways: tuple[WayBack, ...] = ()
    cuts: tuple[WayBack, ...] = ()

    @property
    def waiting(self) -> tuple[QueuedPrompt, ...]:
        """The prompts that wait, and behind them those that are held."""
        return *self.queue, *self.held

    def only_waits(self, call_id: str) -> bool:
        """Whether all that a call does is to wait for the person: each subagent that it waits for asks something."""
        own = {one.session_id for one in self.children if one.call_id == call_id}
        return bool(own) and own <= {one.child for one in self.questions}

    @property
    def open_calls(self) -> tuple[CallItem, ...]:
        """The calls without a result, in the order in which they came."""
        return tuple(one.item for one in self.calls if isinstance(one.item, CallItem))

    @property
    def works(self) -> bool:
        """Whether something goes on: a turn, or room is made in the context between two."""
        return self.active or self.phase is Phase.COMPACTING

    @property
    def checks_goal(self) -> bool:
        """Whether the turn is over but for the check of the goal."""
        is_set = self.goal is not None and self.goal.state is GoalState.ACTIVE
        return self.active and self.phase is Phase.WAITING_FOR_EVENT and is_set

    def has_left(self, placed: Placed) -> bool:
        """Whether an item has left the conversation, since the user went back to before it."""
        return self.left_at(placed.seq)

    def left_at(self, seq: int) -> bool:
        """Whether what came with an event of the log has left the conversation."""
        return any(cut.to < seq < cut.seq for cut in self.cuts)


FoldedView = tuple[SessionView, tuple[Placed, ...]]
"""A view, and the items that changed with it."""


def cuts_of(ways: tuple[WayBack, ...]) -> tuple[WayBack, ...]:
    """Give those of all ways back that count: the last, and before it those that none of these has left behind."""
    cuts: list[WayBack] = []
    for way in reversed(ways):
        if not cuts or way.seq <= cuts[-1].to:
            cuts.append(way)
    return tuple(reversed(cuts))
