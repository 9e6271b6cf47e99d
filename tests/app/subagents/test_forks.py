"""Subagents that begin with the conversation of their session: the same bytes are sent first, with no more rights."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.subagents.families import MODEL, call, events_of, family
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import session_trust
from treadle.context.log_reader import TranscriptReader
from treadle.protocol.children import ChildEnded, ChildOutcome
from treadle.protocol.events import CallFinished, Prompt, SessionStarted, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import TurnEnded
from treadle.protocol.permissions import Mode
from treadle.protocol.sealed import ResultMade
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import Expectation, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

FORK = Texts(contains=("From here on you are a subagent",))


def of_fork(*items: Any, steps: int) -> Turn:
    """What a fork says after so many replies, those that it inherits among them."""
    asked = Expectation(conversation=FORK, assistant_messages=steps)
    return Turn(when=asked, items=items)


def turns(*first: Any) -> tuple[Turn, ...]:
    return (
        of_fork(*first, steps=1),
        of_fork(SayText(text="It returns 1, as read above."), steps=2),
        Turn(when=Expectation(assistant_messages=0), items=(call("read_file", path="a.py"),)),
        Turn(
            when=Expectation(assistant_messages=1),
            items=(call("use_subagents", tasks=[{"prompt": "What does f return?", "agent": "fork"}]),),
        ),
        Turn(when=Expectation(assistant_messages=2), items=(SayText(text="Done."),)),
    )


def plain(value: Any) -> Any:
    """What is sent without the marks that say how far it is to be cached."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name != "cache_control"}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("protocol", [ToolProtocol.NATIVE, ToolProtocol.XML])
async def test_a_fork_is_sent_the_same_bytes_first(folder: Path, protocol: ToolProtocol) -> None:
    script = Script(turns=turns(SayText(text="It returns 1, as read above.")))
    async with ScriptedServer(script) as server:
        settings = Settings(model=MODEL, base_url=server.base_url, mode=Mode.AUTO, tool_protocol=protocol)
        opening = Opening(
            workspace=folder, settings=settings, user_present=True, trust=session_trust(folder, once=True)
        )
        async with await open_session(opening) as live, live.follow() as feed:
            await live.post(Prompt(id="p", content=(Text(text="What is there?"),)), Source(kind="test"))
            async for one in feed:
                if isinstance(one, TurnEnded):
                    break
        bodies = [plain(seen.body) for seen in server.requests]
    assert server.violations == []
    (fork,) = [body for body in bodies if FORK.contains[0] in json.dumps(body["messages"])]
    begins = next(body for body in bodies if len(body["messages"]) == 3)  # the request whose reply began it
    for part in ("system", "tools", "model"):
        assert json.dumps(fork.get(part)) == json.dumps(begins.get(part)), part
    *before, last = begins["messages"]
    *same, mine = fork["messages"]
    assert json.dumps(same) == json.dumps(before)
    *blocks, end = last["content"]
    assert json.dumps(mine["content"][: len(blocks)]) == json.dumps(blocks)
    follows = mine["content"][len(blocks)]
    assert follows == end or follows["text"].startswith(end["text"])  # as XML, one text is one block
    assert "What does f return?" not in json.dumps(begins)
    assert "What does f return?" in json.dumps(mine)


async def test_a_fork_has_its_conversation_in_its_own_log_and_its_answer_alone_comes_back(folder: Path) -> None:
    async with family(folder, *turns(SayText(text="It returns 1, as read above."))) as own:
        await own.turn()
    assert own.result.outcome is Outcome.OK
    assert "It returns 1, as read above." in own.text
    root, child = events_of(SessionStarted)
    assert not root.inherits
    assert "return 1" in str(child.inherits)
    assert child.mode is Mode.PLAN


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (call("use_subagents", tasks=[{"prompt": "Look."}]), "A subagent begins no others"),
        (call("write_to_file", path="b.py", content="x"), "plan mode changes nothing"),
        (call("set_timer", seconds=5), "set_timer is not allowed in this session"),
    ],
)
async def test_a_fork_is_told_of_all_tools_and_may_use_no_more_than_any_subagent(
    folder: Path, wanted: Any, says: str
) -> None:
    async with family(folder, *turns(wanted)) as own:
        await own.turn()
    refused = [one.result for kind in (CallFinished, ResultMade) for one in events_of(kind)]
    assert sum(says in str(one.content) for one in refused) == 1, refused
    assert [one.outcome for one in events_of(ChildEnded)] == [ChildOutcome.DONE]
    assert not (folder / "b.py").exists()


async def test_an_agent_of_a_file_may_be_a_fork(folder: Path) -> None:
    place = folder / ".treadle" / "agents"
    place.mkdir(parents=True)
    words = "From here on you are a subagent that checks."
    (place / "check.md").write_text(
        f"---\nname: check\ndescription: checks\ncontext: fork\ntools: Read\n---\n{words}\n"
    )
    script = turns(SayText(text="It returns 1, as read above."))
    begins = Turn(
        when=Expectation(assistant_messages=1),
        items=(call("use_subagents", tasks=[{"prompt": "What does f return?", "agent": "check"}]),),
    )
    async with family(folder, *script[:3], begins, script[4]) as own:
        await own.turn()
    assert own.result.outcome is Outcome.OK
    (child,) = [one for one in events_of(SessionStarted) if one.child_of]
    reader = TranscriptReader()
    reader._inherit(child.inherits, 1)
    assert reader.transcript.messages(ToolProtocol.NATIVE) == child.inherits
