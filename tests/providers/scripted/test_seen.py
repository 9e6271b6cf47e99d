"""What plays sees of a request is the same over every wire API."""

import pytest
from tests.providers.support import APIS, KEY, collect, provider_at, request, result, user

from treadle.protocol.messages import Message, Role, ToolUse
from treadle.protocol.models import StreamText
from treadle.providers.scripted.player import Performance, perform
from treadle.providers.scripted.script import Pace, SayText, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.providers.scripted.seen_requests import SeenRequest


class Asked:
    """Says how often it was asked, and keeps what it saw."""

    model = "counting"

    def __init__(self) -> None:
        self.seen: list[SeenRequest] = []

    def play(self, seen: SeenRequest) -> Performance:
        self.seen.append(seen)
        return perform(Turn(items=(SayText(text=f"Request {len(self.seen)}."),)), seen, Pace())


@pytest.mark.parametrize("api", APIS)
async def test_a_program_that_plays_sees_all_results_of_the_last_step(api: str) -> None:
    uses = [ToolUse(id=f"c{n}", name="read_file", arguments={"path": "a"}, wire_id=f"call_0_{n}") for n in range(2)]
    both = Message(role=Role.USER, content=(result("first", "call_0_0"), result("second", "call_0_1")))
    asked = request(user("Look."), Message(role=Role.ASSISTANT, content=tuple(uses)), both)
    plays = Asked()
    async with ScriptedServer(plays, api_key=KEY) as server:
        for number in (1, 2):
            events = await collect(provider_at(api, server.base_url), asked)
            assert "".join(event.text for event in events if isinstance(event, StreamText)) == f"Request {number}."
    assert server.violations == []
    assert [(seen.last_result, seen.last_user, seen.messages) for seen in plays.seen] == [
        ("first\nsecond", "Look.", 3)
    ] * 2
