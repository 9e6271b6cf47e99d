"""What waits when a person stops the work is held: nothing is sent until they say so, and nothing is lost."""

import pytest

from tests.engine.exploring import TUI, World
from tests.engine.test_advance_properties import through_codec
from treadle.engine.core.advance import fold
from treadle.engine.core.state import AwaitingReply, Idle
from treadle.engine.core.turns import queued
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Delivery, EditQueued, Interrupt, MoveQueued, Prompt, Resumed
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, text_of
from treadle.protocol.models import ErrorKind
from treadle.protocol.notifications import QueueChanged

ATTACHED = Enclosure(kind=EnclosureKind.FILE, origin="notes.txt", content=(Text(text="notes"),))
MENTIONED = Enclosure(kind=EnclosureKind.FILE, origin="a.py", content=(Text(text="a"),))


def said(number: str, text: str = "", delivery: Delivery = Delivery.QUEUE) -> Prompt:
    return Prompt(id=number, content=(Text(text=text or number),), delivery=delivery, enclosed=(ATTACHED,))


def at_work(*waiting: Prompt) -> World:
    world = World().begin()
    world.take(Prompt(id="first", content=(Text(text="do it"),)))
    world.take(world.ready())
    for prompt in waiting:
        world.take(prompt)
    return world


def cut(world: World) -> None:
    """Let the reply end that the stop cut."""
    waiting = world.state.activity
    assert isinstance(waiting, AwaitingReply)
    world.take(world.failure(waiting.step, waiting.attempt, ErrorKind.CANCELLED))


def stopped(*waiting: Prompt) -> World:
    world = at_work(*waiting)
    world.take(Interrupt(hold=True))
    cut(world)
    return world


def ids(world: World) -> tuple[list[str], list[str]]:
    return [one.prompt.id for one in world.state.queue], [one.prompt.id for one in world.state.held]


def test_a_stop_holds_what_waits_and_starts_nothing() -> None:
    world = stopped(said("a"), said("b", delivery=Delivery.STEER))
    assert (ids(world), world.state.turn, world.state.activity) == (([], ["a", "b"]), None, Idle())
    told = [one for one in world.told() if isinstance(one, QueueChanged)]
    assert [[prompt.id for prompt in told[-1].prompts], [prompt.id for prompt in told[-1].held]] == [[], ["a", "b"]]
    world.take(Resumed(user_present=True))  # whoever takes the session up finds them
    assert ids(world) == ([], ["a", "b"])
    assert fold(through_codec(world.log)) == world.state


def test_a_stop_that_holds_nothing_goes_on_with_what_waits() -> None:
    world = at_work(said("a"))
    world.take(Interrupt())
    cut(world)
    assert ids(world) == ([], [])
    assert world.state.turn is not None


def test_what_is_held_is_sent_with_all_that_goes_along_with_it() -> None:
    world = stopped(said("a"), said("b"))
    world.take(MoveQueued(prompt_id="b", delivery=Delivery.QUEUE))
    assert ids(world) == ([], ["a"])
    (delivered,) = world.state.delivering
    assert (delivered.id, delivered.enclosed) == ("b", (ATTACHED,))
    world.take(MoveQueued(prompt_id="a", delivery=Delivery.STEER))  # the session works again: at its next step
    assert ids(world) == (["a"], [])
    assert queued(world.state.queue)[0].steer


def test_what_is_held_is_changed_or_dropped_and_its_id_is_taken() -> None:
    world = stopped(said("a"), said("b"))
    world.take(EditQueued(prompt_id="a", content=(Text(text="other"),), keeps=True))
    assert (text_of(world.state.held[0].prompt.content), world.state.held[0].prompt.enclosed) == ("other", (ATTACHED,))
    assert not world.try_take(said("a"))
    world.take(EditQueued(prompt_id="b"))
    assert ids(world) == ([], ["a"])
    with pytest.raises(RefusedError):
        world.take(MoveQueued(prompt_id="b", delivery=Delivery.QUEUE), TUI)


@pytest.mark.parametrize(
    ("place", "order"), [(None, "abc"), (0, "bac"), (1, "abc"), (2, "acb"), (9, "acb"), (-1, "bac")]
)
def test_what_waits_goes_before_others(place: int | None, order: str) -> None:
    world = at_work(said("a"), said("b"), said("c"))
    world.take(MoveQueued(prompt_id="b", delivery=Delivery.QUEUE, place=place))
    assert ids(world) == (list(order), [])


def test_an_edit_keeps_what_was_attached_and_not_what_its_old_words_mentioned() -> None:
    prompt = Prompt(id="a", content=(Text(text="see @a.py"),), enclosed=(ATTACHED, MENTIONED))
    words = (Text(text="see nothing"),)
    assert EditQueued(prompt_id="a", content=words, keeps=True).edited(prompt).enclosed == (ATTACHED,)
    assert EditQueued(prompt_id="a", content=words, enclosed=(MENTIONED,)).edited(prompt).enclosed == (MENTIONED,)
    both = EditQueued(prompt_id="a", content=words, enclosed=(MENTIONED,), keeps=True)
    assert both.edited(prompt).enclosed == (ATTACHED, MENTIONED)
