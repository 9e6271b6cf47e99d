"""What leaves when a conversation does not fit: never the task, never the work, and never the end of it."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.exploring import TRAITS, World, decision
from tests.engine.invariants import broken_invariants, images_are_few
from tests.engine.test_guards import begin, finished
from tests.engine.world import check_messages
from tests.fakes.engine import FakeProvider, ports
from tests.fakes.messages import add_user
from tests.providers.support import APIS, READ
from treadle.context.compaction_words import CompactionSettings
from treadle.context.left_out import Ran, remember_run
from treadle.context.log_reader import TranscriptReader
from treadle.context.shorten import LEAST_KEPT, fair_shares, shorten
from treadle.context.transcript import Transcript
from treadle.engine.core.state import AwaitingReply, Calling, Retrying, replace
from treadle.engine.runtime.compacting import carried_out, plan_room
from treadle.engine.runtime.model_requests import build_request, cost, terms_of
from treadle.engine.runtime.summary import ask_for_summary
from treadle.engine.runtime.window import (
    bytes_of,
    in_force,
    largest_conversation,
    most_of_one_result,
    next_message,
    reply_limit,
    room_beside_reply,
)
from treadle.protocol.events import (
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextExceeded,
    Delivery,
    Pin,
    Prompt,
    ReplyFinished,
)
from treadle.protocol.messages import Image, Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import (
    ErrorKind,
    ModelRequest,
    ModelSpec,
    Prices,
    PriceStep,
    ReplyStop,
    Searches,
    ToolProtocol,
)
from treadle.protocol.permissions import Verdict
from treadle.protocol.tools import FileChange, Outcome, Preview, RunCommand, ToolCall, result_text
from treadle.protocol.usage import Usage
from treadle.providers.endpoint import Endpoint
from treadle.providers.scripted.scripted_server import WIRE_FORMATS

SMALL = ModelSpec(provider="p", name="m", context_window=8_192, max_output=8_192)


PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")


def read(world: World, *texts: str, name: str = "look", command: str = "", change: str = "", images: int = 0) -> None:
    """One step in which calls of a tool give these texts; the window is looked after as the runtime does it."""
    fit(world)
    activity = world.state.activity
    assert isinstance(activity, AwaitingReply), activity
    uses = [
        ToolUse(id=f"call_{activity.step}_{at}", name=name, arguments={"n": activity.step}) for at in range(len(texts))
    ]
    for use in uses:
        call = CallProposed(
            step=activity.step,
            attempt=1,
            call=ToolCall(id=use.id, name=use.name, arguments=use.arguments),
            traits=TRAITS[name],
        )
        world.take(call)
    message = Message(role=Role.ASSISTANT, content=(Text(text="I look."), *uses))
    world.take(ReplyFinished(step=activity.step, attempt=1, message=message, stop=ReplyStop.TOOL_USE, usage=Usage()))
    for use, text in zip(uses, texts, strict=True):
        accesses = (RunCommand(command=command, cwd="/w"),) if command else ()
        judged = CallJudged(
            call_id=use.id, decision=decision(Verdict.ALLOW), preview=Preview(title="t"), accesses=accesses
        )
        world.take(judged)
        world.take(CallStarted(call_id=use.id))
        changes = (FileChange(path=change, before="1", after="2", added=1),) if change else ()
        made = result_text(Outcome.OK, text)
        content = (*made.content, *(PICTURE for _ in range(images)))
        world.take(CallFinished(call_id=use.id, result=replace(made, content=content, changes=changes)))


def tokens(world: World) -> int:
    return world.transcript.tokens + world.transcript.tokens_of(
        bytes_of(next_message(world.state, world.reader, "here"), world.reader)
    )


def fit(world: World, spec: ModelSpec = SMALL) -> None:
    """Seal the step's message, with room made as often as it takes."""
    step = world.state.step
    for _ in range(5):
        window = largest_conversation(spec) if world.state.space.compactions else room_beside_reply(spec)
        assert window is not None
        if tokens(world) <= window:
            break
        world.take(ContextExceeded(step=step, tokens=tokens(world), window=window))
        assert world.state.turn is not None, "the turn ended"
        world.take(make_room(world, spec))
        assert world.state.turn is not None, "the turn ended"
    world.take(world.ready("here"))


def make_room(world: World, spec: ModelSpec, *, wanted: bool = False, written: str = "") -> Compacted:
    """Choose what leaves, as the runtime does it."""
    plan = plan_room(world.state, world.reader, spec, CompactionSettings(), wanted=wanted)
    return carried_out(plan, world.state, world.reader, spec, step=world.state.step, written=written)


def sent(world: World) -> str:
    return repr(world.transcript.messages(ToolProtocol.NATIVE))


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 60_000), min_size=1, max_size=4), min_size=1, max_size=12))
def test_results_of_any_size_never_end_the_work_in_a_small_window(steps: list[list[int]]) -> None:
    world = begin()
    for number, sizes in enumerate(steps):
        most = most_of_one_result(SMALL)
        read(world, *(f"result {number} " + "line of text\n" * (min(size, most) // 13) for size in sizes))
        check_messages(world.transcript.messages(ToolProtocol.NATIVE))
        assert world.transcript.tokens <= SMALL.context_window - 1_024  # type: ignore[operator]
        assert "do it" in sent(world)
    fit(world)
    check_messages(world.transcript.messages(ToolProtocol.NATIVE))


WINDOWS = st.integers(3_000, 40_000)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 9_000)),
        st.tuples(st.just("prompt"), st.integers(0, 400)),
        st.tuples(st.just("pin"), st.integers(0, 3)),
        st.tuples(st.just("image"), st.just(1)),
        st.tuples(st.just("room"), st.integers(0, 2)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("protocol", list(ToolProtocol))
@settings(max_examples=60)
@given(moves=MOVES, window=WINDOWS, keep=st.floats(0.05, 0.9), written=st.sampled_from(["", "What I know. " * 40]))
def test_whatever_leaves_every_request_stays_valid_and_keeps_the_task_and_the_pins(
    protocol: ToolProtocol, moves: list[tuple[str, int]], window: int, keep: float, written: str
) -> None:
    world, spec = begin(protocol), ModelSpec(provider="p", name="m", context_window=window, max_output=1_000)
    pins: dict[str, str] = {}
    for number, (move, size) in enumerate(moves):
        if world.state.turn is None:
            break
        match move:
            case "image":
                read(world, "seen", images=1)
            case "read":
                read(world, f"result {number} " + "text of a line\n" * (min(size, window) // 15))
            case "prompt":
                words = (Text(text="x" * (size + 1)),)
                world.take(Prompt(id=f"p{number}", content=words, delivery=Delivery.STEER))
            case "pin":
                pins[f"pin{size}"] = f"remember {number}"
                world.take(Pin(id=f"pin{size}", text=pins[f"pin{size}"]))
            case _:
                plan = plan_room(world.state, world.reader, spec, CompactionSettings(keep=keep), wanted=size == 0)
                made = carried_out(plan, world.state, world.reader, spec, step=1, written=written)
                world.transcript.drop(made.through, made.summary)
                world.transcript.replace_results({one.call_id: one.content for one in made.shortened})
                assert not made.dropped or all(pin in sent(world) for pin in pins.values())
        for shown in ToolProtocol:
            messages = world.transcript.messages(shown)
            assert broken_invariants(messages) == ()
            if messages:
                assert "do it" in repr(messages[0])
    check_wires(world)


WIRES = dict(zip(APIS, (form for _, form in WIRE_FORMATS), strict=True))
"""What the real wire APIs refuse, by the name of each."""


def check_wires(world: World) -> None:
    """What every wire API makes of a conversation is what its provider takes: roles, calls, results, no empty one."""
    for protocol in ToolProtocol:
        messages = world.transcript.messages(protocol)
        if messages and messages[-1].role is Role.ASSISTANT:
            messages = messages[:-1]  # its results are not there yet
        if not messages:
            continue
        tools = tuple(msgspec.structs.replace(READ, name=name) for name in TRAITS if protocol is ToolProtocol.NATIVE)
        request = ModelRequest(id="r", model="anthropic.claude-sonnet-4-5", system="s", messages=messages, tools=tools)
        for api, (make, _) in APIS.items():
            body = json.loads(make(Endpoint(name=api, base_url="https://h")).prepare(request).body)
            assert WIRES[api].book.broken({"model": "in the path", "stream": True, **body}) == [], (api, protocol)
            assert "do it" in json.dumps(
                next(iter(body.get(key) for key in ("messages", "contents", "input") if key in body))
            )


def test_after_room_was_made_the_model_knows_what_it_has_done() -> None:
    world = begin()
    read(world, "1 passed", name="run", command="python -m pytest -q", change="")
    read(world, "edited", name="write", change="/w/shop/cart.py")
    for _ in range(6):
        read(world, "x " * 3_000)
    words = sent(world)
    assert "$ python -m pytest -q\\n1 passed" in words
    assert "- /w/shop/cart.py (+1 -0)" in words
    assert "Ask the user" not in words, "nobody is there"


def test_a_summary_comes_from_the_conversation_and_not_from_the_web() -> None:
    request = ModelRequest(id="r", model="m", system="s", messages=(), web_search=True)
    assert not ask_for_summary(request, (), "", SMALL).web_search


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 3_000), max_size=6),
    written=st.integers(0, 6_000),
    again=st.booleans(),
)
def test_compaction_that_was_asked_for_never_makes_a_conversation_longer(
    sizes: list[int], written: int, again: bool
) -> None:
    world, spec = begin(), replace(SMALL, context_window=200_000)
    for round_ in range(1 + again):
        for number, size in enumerate(sizes):
            read(world, f"result {round_} {number} " + "x" * size)
        before = world.transcript.tokens
        made = make_room(world, spec, wanted=True, written="w" * written)
        world.transcript.drop(made.through, made.summary)
        world.transcript.replace_results({one.call_id: one.content for one in made.shortened})
        assert world.transcript.tokens <= before
        assert made.after <= made.before


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 900_000)), min_size=1, max_size=8))
def test_images_are_bounded_and_the_oldest_leave_first(added: list[tuple[int, int]]) -> None:
    transcript = Transcript()
    for number, (count, size) in enumerate(added):
        images = tuple(Image(media_type="image/png", data="a" * size) for _ in range(count))
        results = (ToolResult(call_id=f"c{number}", name="look", content=images or (Text(text="none"),)),)
        transcript.add_user((Text(text=f"number {number}"), *results))
        transcript.add_assistant(
            Message(role=Role.ASSISTANT, content=(ToolUse(id=f"c{number + 1}", name="look", arguments={}),))
        )
        messages = transcript.messages(ToolProtocol.NATIVE)
        assert images_are_few(messages)
        shown = [
            isinstance(inner, Image)
            for message in messages
            for block in message.content
            if isinstance(block, ToolResult)
            for inner in block.content
            if isinstance(inner, Image) or "too many images" in inner.text  # type: ignore[union-attr]
        ]
        assert shown == sorted(shown)
        assert not count or shown[-1]
        if len(shown) <= 100 and sum(count * size for count, size in added[: number + 1]) <= 24_000_000:
            assert all(shown)


def test_later_requests_are_kept_in_their_order_however_often_room_was_made() -> None:
    world = begin()
    for number in range(9):
        for kind in ("request", "again"):
            fit(world)
            answer = finished(world.state.step, ReplyStop.END_TURN, "It is so. " * 700)
            world.take(replace(answer, usage=Usage()))
            world.take(Prompt(id=f"{kind}{number}", content=(Text(text=f"{kind} {number}"),)))
    words = sent(world)
    wanted = [f"{kind} {number}" for number in range(8) for kind in ("request", "again")]
    assert [words.find(one) for one in wanted] == sorted(words.find(one) for one in wanted)
    assert -1 not in [words.find(one) for one in wanted]
    assert words.count("Earlier messages were left out") == 1


def test_a_request_that_the_provider_refuses_as_too_long_is_cut_where_nothing_old_can_leave() -> None:
    world = begin()
    read(world, "y" * 30_000)
    spec = ModelSpec(provider="p", name="m")
    world.take(world.ready(""))
    for _ in range(2):
        activity = world.state.activity
        assert isinstance(activity, AwaitingReply)
        world.take(world.failure(activity.step, activity.attempt, ErrorKind.CONTEXT_TOO_LONG))
        room_made = make_room(world, spec)
        assert room_made.dropped == 0
        assert room_made.shortened
        world.take(room_made)
    assert isinstance(world.state.activity, AwaitingReply | Retrying)
    assert world.transcript.tokens < 30_000 / 3.6 / 3
    check_messages(world.transcript.messages(ToolProtocol.NATIVE))


def test_the_log_keeps_what_was_cut() -> None:
    world = begin()
    for _ in range(4):
        read(world, "z" * 7_000)
    fit(world)
    finished_calls = [event.data for event in world.log if isinstance(event.data, CallFinished)]
    assert all(call.result == result_text(Outcome.OK, "z" * 7_000) for call in finished_calls)
    assert any(isinstance(event.data, Compacted) for event in world.log)


@given(st.integers(0, 9_000), st.none() | st.integers(1, 9_000))
def test_the_reply_never_gets_more_than_the_window_leaves(used: int, max_output: int | None) -> None:
    world = begin()
    add_user(world.transcript, results=(), prompts=((Text(text="x" * used),),), notes=(), environment="")
    limit = reply_limit(world.state, replace(SMALL, max_output=max_output), world.transcript.tokens)
    if max_output is None:
        assert limit is None
    else:
        assert limit is not None
        assert limit <= max_output
        assert limit <= max(1_024, 8_192 - world.transcript.tokens)


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 5_000), max_size=8), st.integers(0, 20_000))
def test_shares_are_fair(sizes: dict[str, int], most: int) -> None:
    shares = fair_shares(sizes, most)
    assert shares.keys() == sizes.keys()
    assert all(min(sizes[name], LEAST_KEPT) <= share <= sizes[name] for name, share in shares.items())
    assert sum(shares.values()) <= max(most, LEAST_KEPT * len(sizes))
    cut = [share for name, share in shares.items() if share < sizes[name]]
    assert not cut or max(cut) - min(cut) <= len(sizes)


@given(st.text(st.characters(codec="utf-8"), max_size=3_000), st.integers(1, 2_000))
def test_what_is_cut_keeps_its_ends_and_says_how_much_is_missing(text: str, most: int) -> None:
    short = shorten(text, most, "why")
    if len(text) <= most:
        assert short == text
        return
    head, _, rest = short.partition("\n[… ")
    assert text.startswith(head) or "\n[… " in text
    assert len(short) <= most + 80
    assert "characters left out: why]" in rest or "\n[… " in text


def test_the_newest_check_is_remembered_whatever_ran_after_it() -> None:
    runs: tuple[Ran, ...] = remember_run((), Ran(command="npm test", said="2 failed"))
    for number in range(9):
        runs = remember_run(runs, Ran(command=f"ls {number}", said="a"))
    assert [run.command for run in runs] == ["npm test", "ls 5", "ls 6", "ls 7", "ls 8"]
    assert remember_run(runs, Ran(command="npm test", said="ok"))[-1].said == "ok"


@pytest.mark.parametrize(
    ("known", "named", "window"),
    [(None, None, None), (100, None, 100), (None, 50, 50), (100, 50, 50), (50, 100, 50), (70, 70, 70)],
)
def test_the_window_that_the_provider_named_holds_where_it_is_the_smaller_one(
    known: int | None, named: int | None, window: int | None
) -> None:
    state = replace(begin().state, model=Calling(window=named))
    assert in_force(ModelSpec(provider="p", name="m", context_window=known), state).context_window == window


@pytest.mark.parametrize(
    ("window", "output", "usual", "most"),
    [
        (None, 500, None, None),
        (100_000, 4_000, 96_000, 98_976),
        (100_000, None, 91_808, 98_976),
        (2_000, 4_000, 1_500, 1_500),
    ],
)
def test_room_is_kept_for_the_reply(
    window: int | None, output: int | None, usual: int | None, most: int | None
) -> None:
    spec = ModelSpec(provider="p", name="m", context_window=window, max_output=output)
    assert (room_beside_reply(spec), largest_conversation(spec)) == (usual, most)


@pytest.mark.parametrize(
    ("usage", "searches", "price"),
    [
        (Usage(input_tokens=1_000_000), None, 1.0),
        (Usage(output_tokens=1_000_000), None, 2.0),
        (Usage(cache_read_tokens=1_000_000), None, 0.25),
        (Usage(cache_write_tokens=1_000_000), None, 1.0),
        (Usage(searches=3, input_tokens=1_000_000), Searches(price=10.0), 1.03),
        (Usage(searches=3), Searches(), None),
        (Usage(searches=3), None, None),
    ],
)
def test_a_model_call_costs_what_its_parts_cost(usage: Usage, searches: Searches | None, price: float | None) -> None:
    prices = Prices(input=1.0, output=2.0, cache_read=0.25)
    found = cost(ModelSpec(provider="p", name="m", prices=prices, searches=searches), usage)
    assert found == (None if price is None else pytest.approx(price))
    assert cost(ModelSpec(provider="p", name="m"), usage) is None


@pytest.mark.parametrize(
    ("usage", "price"),
    [
        (Usage(input_tokens=200_000, output_tokens=100_000), 0.2 + 0.2),
        (Usage(input_tokens=200_001, output_tokens=100_000), 0.800004 + 0.6),
        (Usage(input_tokens=1, cache_read_tokens=200_000, output_tokens=100_000), 0.000004 + 0.1 + 0.6),
        (Usage(input_tokens=1, cache_write_tokens=200_000), 0.800004),
        (Usage(input_tokens=500_000), 5.0),
    ],
)
def test_all_of_a_long_request_costs_the_price_beyond_the_step(usage: Usage, price: float) -> None:
    steps = (
        PriceStep(above=200_000, input=4.0, output=6.0, cache_read=0.5),
        PriceStep(above=400_000, input=10.0, output=6.0),
    )
    spec = ModelSpec(
        provider="p", name="m", prices=Prices(input=1.0, output=2.0, cache_read=0.25, cache_write=1.25, steps=steps)
    )
    assert cost(spec, usage) == pytest.approx(price)
    made = ports(FakeProvider(), model=lambda _: spec)
    short, long = (terms_of(made, begin().state, Transcript(), size) for size in (2_200, 220_000 * 22 // 10))
    assert (short.input_price, short.output_price) == (1.25, 2.0)
    assert (long.input_price, long.output_price) == (4.0, 6.0)


@pytest.mark.parametrize(
    ("searches", "most"),
    [
        (None, 0.0),
        (Searches(price=10.0, most=5), 0.05),
        (Searches(price=10.0), None),
        (Searches(most=5), None),
    ],
)
def test_the_terms_of_a_call_bound_its_searches_where_that_is_known(
    searches: Searches | None, most: float | None
) -> None:
    spec = ModelSpec(provider="p", name="m", prices=Prices(input=2.0, output=3.0), searches=searches)
    terms = terms_of(ports(FakeProvider(), model=lambda _: spec), begin().state, Transcript(), 2_200)
    assert (terms.input_price, terms.search_cost) == (2.0, most)
    assert terms.input_tokens == pytest.approx(1_000, abs=1)


@pytest.mark.parametrize(
    ("wanted", "limit", "thinking"),
    [
        (None, 9_000, None),
        (0, 9_000, None),
        (4_000, None, 4_000),
        (4_000, 9_000, 4_000),
        (4_000, 3_000, 1_976),
        (4_000, 2_048, 1_024),
        (4_000, 2_047, None),
    ],
)
def test_thinking_leaves_room_for_the_answer(wanted: int | None, limit: int | None, thinking: int | None) -> None:
    state = begin().state
    state = replace(state, model=Calling(choice=replace(state.choice, thinking_budget=wanted)))
    made = ports(FakeProvider(), model=lambda _: ModelSpec(provider="p", name="m", max_output=limit))
    assert build_request(made, state, TranscriptReader()).thinking_budget == thinking
