"""What a model call may cost at worst: nothing is sent that could go over a budget, and nobody is asked twice."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.exploring import World
from treadle.engine.core.budgets import LEAST_REPLY, Ask, Send, Stop, check_budgets
from treadle.engine.core.machine_effects import CallModel, Cancel, StartTimer, timer_work
from treadle.engine.core.state import Calling, Money, State, TurnState, phase, replace, with_model
from treadle.protocol.events import Answer, Prompt, Resumed, SetFallback, SetPresence, Source, TimerFired
from treadle.protocol.limits import RUN_BUDGET, Budget, Limits, Terms
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, Spent, ToolProtocol
from treadle.protocol.notifications import ModelChanged, Phase, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import OptionKind, QuestionKind
from treadle.protocol.usage import Usage

TERMS = Terms(input_tokens=10_000, max_output=20_000, input_price=1.0, output_price=10.0)
ME = Source(kind="tui", id="main")


def turn_of(usage: Usage = Usage(), cost: float | None = 0.0) -> TurnState:  # noqa: B008 - a frozen value
    return TurnState(number=1, sources=(ME,), usage=usage, cost=cost)


@given(
    budgets=st.tuples(*[st.none() | st.floats(0, 5)] * 4, *[st.none() | st.integers(0, 100_000)] * 4),
    spent=st.tuples(*[st.floats(0, 3)] * 4, *[st.integers(0, 50_000)] * 4),
    terms=st.builds(
        Terms,
        input_tokens=st.integers(0, 60_000),
        max_output=st.none() | st.integers(1, 64_000),
        input_price=st.floats(0, 30),
        output_price=st.floats(0, 100),
        search_cost=st.floats(0, 0.2),
    ),
)
def test_what_is_sent_fits_into_every_budget_at_worst(
    budgets: tuple[float | int | None, ...],
    spent: tuple[float | int, ...],
    terms: Terms,
) -> None:
    pairs = zip(budgets[:4], budgets[4:], strict=True)
    turn, session, day, run = (
        Budget(cost=cost, tokens=None if at_most is None else int(at_most)) for cost, at_most in pairs
    )
    used = [Spent(cost=cost, tokens=int(tokens)) for cost, tokens in zip(spent[:4], spent[4:], strict=True)]
    state = State(
        limits=Limits(turn=turn, session=session, day=day, run=run),
        turn=turn_of(Usage(input_tokens=used[0].tokens), used[0].cost),
        money=Money(spent=used[1]),
    )
    terms = replace(terms, day=used[2], run=used[3])
    room = check_budgets(state, terms)
    if not isinstance(room, Send):
        assert isinstance(room, Stop)
        return
    for budget, one in zip((turn, session, day, run), used, strict=True):
        assert budget.cost is None or one.cost + room.worst.cost <= budget.cost + 1e-6
        assert budget.tokens is None or one.tokens + room.worst.tokens <= budget.tokens


def test_the_budget_of_a_run_says_so() -> None:
    state = State(limits=Limits(run=Budget(cost=1.0)), turn=turn_of())
    stopped = check_budgets(state, replace(TERMS, run=Spent(cost=0.99, tokens=5, estimated=True)))
    assert isinstance(stopped, Stop)
    assert stopped.why == f"{RUN_BUDGET} $1.00: about $0.99 is spent, and the next call can cost $0.02"


def test_a_small_budget_shortens_the_reply_before_it_stops_the_turn() -> None:
    state = State(limits=Limits(session=Budget(cost=0.10)), turn=turn_of())
    assert check_budgets(state, TERMS) == Send(9_000, Spent(cost=0.1, tokens=19_000))
    spent = replace(state, money=replace(state.money, spent=Spent(cost=0.08)))
    assert check_budgets(spent, TERMS) == Stop(
        "the session's budget of $0.10: $0.08 is spent, and the next call can cost $0.02"
    )


def test_tokens_of_every_kind_count() -> None:
    usage = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
    state = State(limits=Limits(turn=Budget(tokens=12_000)), turn=turn_of(usage))
    assert check_budgets(state, TERMS) == Send(1_990, Spent(cost=0.0299, tokens=11_990))
    short = replace(state, limits=Limits(turn=Budget(tokens=10_009 + LEAST_REPLY)))
    assert isinstance(check_budgets(short, TERMS), Stop)


def test_an_unknown_price_is_asked_about_where_the_budget_is_in_money() -> None:
    unpriced = Terms(input_tokens=10, max_output=5_000)
    state = State(
        limits=Limits(day=Budget(cost=1.0)),
        turn=turn_of(),
        model=Calling(choice=ModelChoice(model="p/m", tool_protocol=ToolProtocol.NATIVE)),
    )
    asked = check_budgets(state, unpriced)
    assert asked == Ask("price:p/m", "The price of p/m is not known, so a budget in money cannot limit it. Continue?")
    assert isinstance(
        check_budgets(replace(state, money=replace(state.money, agreed=frozenset({"price:p/m"}))), unpriced), Send
    )
    assert isinstance(check_budgets(replace(state, limits=Limits(day=Budget(tokens=10_000))), unpriced), Send)


def world(limits: Limits, *, user_present: bool = True) -> World:
    """A turn whose first request is about to be assembled."""
    started = World(limits=limits).begin()
    started.take(SetPresence(user_present=user_present))
    started.take(Prompt(id="p", content=(Text(text="do it"),)))
    return started


def sent(world: World) -> list[CallModel]:
    return [effect for effect in world.effects if isinstance(effect, CallModel)]


def outcome_of(world: World) -> TurnOutcome:
    (told,) = [
        effect.notification
        for effect in world.effects
        if hasattr(effect, "notification") and isinstance(effect.notification, TurnEnded)
    ]
    return told.outcome


def test_a_turn_over_its_budget_ends_resumably_before_anything_is_sent() -> None:
    stopped = world(Limits(session=Budget(cost=0.01)), user_present=False)
    stopped.take(stopped.ready("", terms=TERMS))
    outcome = outcome_of(stopped)
    assert (outcome.stop, sent(stopped)) == (TurnStop.BUDGET, [])
    assert outcome.why == "the session's budget of $0.01: $0.00 is spent, and the next call can cost $0.02"
    assert phase(stopped.state) is Phase.WAITING_FOR_EVENT


@pytest.mark.parametrize("yes", [True, False])
def test_most_of_a_budget_gone_is_asked_once(yes: bool) -> None:
    spending = world(Limits(session=Budget(tokens=40_000)))
    spending.take(spending.ready("", terms=TERMS))
    spending.state = replace(spending.state, money=replace(spending.state.money, spent=Spent(tokens=33_000)))
    spending.take(spending.failure(1, 1, ErrorKind.OVERLOADED))
    spending.state = replace(
        spending.state, money=replace(spending.state.money, terms=replace(TERMS, input_tokens=100))
    )
    spending.take(TimerFired(timer="retry-1-1"))
    (question,) = spending.state.questions
    assert (question.kind, question.more, question.text) == (
        QuestionKind.BUDGET,
        "up to 40,000 tokens",
        "Spent 33,000 of 40,000 tokens. Go on?",
    )
    option = OptionKind.ALLOW_ONCE if yes else OptionKind.REJECT_ONCE
    spending.take(Answer(question_id=question.id, option=option))
    if yes:
        assert sent(spending)[-1] == CallModel(step=1, attempt=2)
        assert spending.state.money.reply_tokens == 6_900
    else:
        assert outcome_of(spending).stop is TurnStop.BUDGET


@pytest.mark.parametrize(
    ("limits", "spent", "text", "more"),
    [
        (
            Limits(session=Budget(cost=5.0), raisable=True),
            Spent(cost=4.999),
            "Spent $5.00 of $5.00. Go on?",
            "up to $10.00",
        ),
        (
            Limits(session=Budget(cost=9.0, tokens=20_000), raisable=True),
            Spent(tokens=19_500),
            "Spent 19,500 of 20,000 tokens, and the next call can take 1,034. Go on?",
            "up to 40,000 tokens",
        ),
    ],
)
def test_a_budget_that_is_used_up_is_raised_by_what_it_was_when_the_user_agrees(
    limits: Limits, spent: Spent, text: str, more: str
) -> None:
    spending = world(limits)
    spending.state = replace(spending.state, money=replace(spending.state.money, spent=spent))
    spending.take(spending.ready("", terms=replace(TERMS, input_tokens=10)))
    (question,) = spending.state.questions
    assert (question.text, question.more) == (text, more)
    spending.take(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE))
    assert sent(spending)[-1] == CallModel(step=1, attempt=1)


def test_each_yes_raises_a_budget_by_what_it_was_at_first() -> None:
    limits = Limits(turn=Budget(cost=5.0), raisable=True)
    state = State(limits=limits, turn=turn_of(cost=5.0), user_present=True)
    first = check_budgets(state, TERMS)
    assert isinstance(first, Ask)
    assert (first.text, first.more) == ("Spent $5.00 of $5.00 in this turn. Go on?", "up to $10.00")
    state = replace(state, money=replace(state.money, agreed=frozenset({first.about})))
    assert isinstance(check_budgets(state, TERMS), Send)
    state = replace(state, turn=turn_of(cost=10.0))
    second = check_budgets(state, TERMS)
    assert isinstance(second, Ask)
    assert (second.text, second.more) == ("Spent $10.00 of $10.00 in this turn. Go on?", "up to $15.00")
    larger = check_budgets(replace(state, limits=replace(limits, turn=Budget(cost=6.0))), TERMS)
    assert isinstance(larger, Ask)
    assert larger.more == "up to $12.00"


def test_the_budget_of_a_day_and_one_of_nothing_and_those_of_older_sessions_are_never_raised() -> None:
    terms = replace(TERMS, day=Spent(cost=5.0))
    for limits in (
        Limits(day=Budget(cost=5.0), soft=2.0, raisable=True),
        Limits(session=Budget(cost=0.0), soft=2.0, raisable=True),
        Limits(session=Budget(cost=0.01), soft=2.0),
    ):
        state = State(
            limits=limits, turn=turn_of(), user_present=True, money=Money(agreed=frozenset({"soft:session:0:0.0:None"}))
        )
        assert isinstance(check_budgets(state, terms), Stop)


def test_a_question_about_money_is_asked_again_after_a_restart_and_nobody_there_means_no() -> None:
    def held() -> World:
        made = world(Limits(session=Budget(cost=1.0)))
        made.take(made.ready("", terms=Terms(input_tokens=5)))
        assert phase(made.state) is Phase.AWAITING_USER_CONFIRMATION
        return made

    again = held()
    again.take(Resumed(user_present=True))
    assert [question.kind for question in again.state.questions] == [QuestionKind.BUDGET]
    endings: list[Callable[[World], object]] = [
        lambda made: made.take(Resumed(user_present=False)),
        lambda made: made.take(SetPresence(user_present=False)),
    ]
    for end in endings:
        ended = held()
        end(ended)
        assert outcome_of(ended).stop is TurnStop.BUDGET


def test_a_turn_is_stopped_when_its_time_is_up() -> None:
    timed = world(Limits(max_seconds=5.0))
    assert StartTimer(timer="turn-1", seconds=5.0) in timed.effects
    timed.take(timed.ready(""))
    timed.take(TimerFired(timer="turn-1"))
    timed.take(timed.failure(1, 1, ErrorKind.CANCELLED))
    assert (outcome_of(timed).stop, outcome_of(timed).why) == (TurnStop.TIME, "the turn's limit of 5 s")


def test_the_timer_of_a_turn_goes_with_it() -> None:
    timed = world(Limits(max_seconds=5.0))
    timed.take(timed.ready(""))
    timed.take(timed.reply(1, 1))
    assert outcome_of(timed).stop is TurnStop.END_TURN
    assert Cancel(work=timer_work("turn-1")) in timed.effects


SPARE = ModelChoice(model="q/spare", tool_protocol=ToolProtocol.XML, thinking_budget=5)


def models_told(world: World) -> list[str]:
    return [
        effect.notification.model
        for effect in world.effects
        if hasattr(effect, "notification") and isinstance(effect.notification, ModelChanged)
    ]


def test_the_fallback_takes_over_for_the_rest_of_the_turn() -> None:
    failing = world(Limits())
    failing.take(SetFallback(choice=SPARE))
    failing.take(failing.ready(""))
    failing.take(failing.failure(1, 1, ErrorKind.OVERLOADED))
    failing.take(TimerFired(timer="retry-1-1"))
    assert failing.state.choice.model == "p/m"
    failing.take(failing.failure(1, 2, ErrorKind.OVERLOADED))
    assert sent(failing)[-1] == CallModel(step=1, attempt=3)
    assert (failing.state.choice.model, failing.state.choice.tool_protocol, failing.state.choice.thinking_budget) == (
        "q/spare",
        ToolProtocol.XML,
        5,
    )
    failing.state = with_model(failing.state, replace(SPARE, tool_protocol=ToolProtocol.NATIVE))
    failing.take(failing.reply(1, 3))
    assert failing.state.turn is None
    assert (failing.state.choice.model, failing.state.model.replaced) == ("p/m", None)
    assert models_told(failing) == ["q/spare", "p/m"]


@pytest.mark.parametrize(
    ("error", "stands_in"),
    [
        (ModelError(kind=ErrorKind.BALANCE, message="no money"), True),
        (ModelError(kind=ErrorKind.OVERLOADED, message="left alone", retry_after=40.0), True),
        (ModelError(kind=ErrorKind.OVERLOADED, message="busy", retry_after=1.0), False),
        (ModelError(kind=ErrorKind.AUTHENTICATION, message="wrong key"), False),
    ],
)
def test_a_provider_that_cannot_serve_for_long_is_replaced_at_once(error: ModelError, stands_in: bool) -> None:
    failing = world(Limits())
    failing.take(SetFallback(choice=SPARE))
    failing.take(failing.ready(""))
    failing.take(replace(failing.failure(1, 1, ErrorKind.OVERLOADED), error=error))
    assert (failing.state.choice.model == "q/spare") is stands_in


@pytest.mark.parametrize(("most", "retries", "tried"), [(6, None, 6), (6, 2, 2), (1, 2, 1), (6, 0, 0), (0, None, 0)])
def test_a_call_is_tried_again_as_often_as_the_session_lets_and_as_is_of_use(
    most: int, retries: int | None, tried: int
) -> None:
    failing = world(Limits(max_retries=most))
    failing.take(failing.ready(""))
    error = ModelError(kind=ErrorKind.NETWORK, message="nothing listens there", retries=retries)
    again = 0
    while failing.state.turn is not None:
        failing.take(replace(failing.failure(1, again + 1, ErrorKind.NETWORK), error=error))
        if failing.state.turn is not None:
            again += 1
            failing.take(TimerFired(timer=f"retry-1-{again}"))
    assert again == tried
    assert outcome_of(failing).error == error


def test_the_fallback_fails_like_any_model() -> None:
    failing = world(Limits(max_retries=0))
    failing.take(SetFallback(choice=SPARE))
    failing.take(failing.ready(""))
    failing.take(replace(failing.failure(1, 1, ErrorKind.BALANCE)))
    failing.take(failing.failure(1, 2, ErrorKind.BALANCE))
    assert outcome_of(failing).stop is TurnStop.ERROR
    assert failing.state.choice.model == "p/m"


def test_a_reply_of_which_nothing_is_told_counts_as_its_worst_case() -> None:
    silent = world(Limits(session=Budget(tokens=100_000)))
    silent.take(silent.ready("", terms=TERMS))
    silent.take(replace(silent.reply(1, 1), usage=Usage(), cost=None))
    assert silent.state.money.spent == Spent(cost=0.21, tokens=30_000, estimated=True)


def test_searches_of_the_provider_are_part_of_the_worst_case() -> None:
    terms = replace(TERMS, search_cost=0.05)
    state = State(limits=Limits(session=Budget(cost=0.30)), turn=turn_of())
    plain, searching = check_budgets(state, TERMS), check_budgets(state, terms)
    assert isinstance(plain, Send)
    assert isinstance(searching, Send)
    assert searching.worst.cost == pytest.approx(plain.worst.cost + 0.05)
    small = State(limits=Limits(session=Budget(cost=0.06)), turn=turn_of())
    assert isinstance(check_budgets(small, TERMS), Send)
    assert isinstance(check_budgets(small, terms), Stop)


def test_searches_without_a_known_bound_make_a_budget_in_money_a_question_once() -> None:
    terms = replace(TERMS, search_cost=None)
    state = State(
        model=Calling(choice=ModelChoice(model="m", tool_protocol=ToolProtocol.NATIVE)),
        limits=Limits(session=Budget(cost=5.0)),
        turn=turn_of(),
    )
    asked = check_budgets(state, terms)
    assert isinstance(asked, Ask)
    assert "web searches" in asked.text
    assert isinstance(
        check_budgets(replace(state, money=replace(state.money, agreed=frozenset({asked.about}))), terms), Send
    )
    assert isinstance(check_budgets(State(limits=Limits(session=Budget(tokens=90_000)), turn=turn_of()), terms), Send)
