"""What a subagent changed comes in between two checkpoints, whatever comes between."""

import random

from msgspec.structs import replace

from tests.engine.exploring import World, children_may, walk
from treadle.engine.core import files, learning, texts
from treadle.engine.core.machine_effects import TakeCheckpoint
from treadle.engine.core.state import ChildState, FilesState, State, Waiting
from treadle.protocol.checkpoints import Moment, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildOutcome, ChildStarted
from treadle.protocol.events import Prompt, Source
from treadle.protocol.limits import Limits


def merging() -> World:
    """A session into which the changes of a subagent come in."""
    for seed in range(5_000):
        world = walk(random.Random(seed), Limits(), longest=40)
        begins = [one for one in children_may(world, 99, random.Random(seed).choice) if isinstance(one, ChildMerges)]
        if begins and not begins[0].over and not world.state.merging and world.try_take(begins[0]):
            return world
    raise AssertionError("no walk leads there")


def test_what_the_session_changed_before_is_kept_as_its_own_whichever_step_that_was() -> None:
    for changing, moment in ((0, Moment.BEFORE), (-3, Moment.BEFORE), (3, Moment.AFTER), (4, Moment.AFTER)):
        state = State(step=4, files=FilesState(changing=changing))
        after, effects = files.merges(state, ChildMerges(session_id="c"))
        assert effects == [TakeCheckpoint(step=4, moment=moment)]
        assert (after.merging, files.after_change(after)[1]) == (("c",), []), "not as long as it comes in"
        over, _ = files.merges(after, ChildMerges(session_id="c", over=True))
        assert files.after_change(over)[1] == [TakeCheckpoint(step=4, moment=Moment.AFTER)]


def test_the_end_of_a_subagent_ends_its_merge() -> None:
    world = merging()
    (session_id,) = world.state.merging
    ended = ChildEnded(session_id=session_id, outcome=ChildOutcome.INTERRUPTED)
    assert learning.subagent_ended(world.state, ended)[0].merging == ()


def test_a_conversation_that_goes_back_into_a_merge_waits_for_no_end_of_it() -> None:
    past = merging().state
    now = replace(past, merging=())
    back, _ = files.rewound(now, Rewound(to=past.seq, state={}), past)
    assert back.merging == ()


def test_a_conversation_that_goes_back_is_told_of_subagents_of_which_nothing_comes_any_more() -> None:
    def begun(name: str) -> ChildState:
        return ChildState(started=ChildStarted(call_id="c", session_id=name, agent="a", task="t", background=True))

    names = ("works", "ended", "waits")
    past = State(children=tuple(map(begun, names)))
    waits = Waiting(prompt=Prompt(id="p", content=()), source=Source(kind="subagent", id="waits"))
    now = State(children=(begun("works"), begun("later")), queue=(waits,))
    back, _ = files.rewound(now, Rewound(to=past.seq, state={}), past)
    assert [(one.started.session_id, one.left) for one in back.children] == [("works", False), ("later", True)]
    assert [note.text for note in back.notes][1:] == [texts.works_no_more(["ended"])]
