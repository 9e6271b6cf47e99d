"""What follows once the conversation is back: the message to write anew, and the models where that was chosen."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.fakes.clock import run_at_once
from treadle.app.session.own_commands.command_answers import CommandAnswer
from treadle.protocol.checkpoints import Restore
from treadle.protocol.events import Op
from treadle.protocol.notifications import ConversationRewound
from treadle.tui.session.entered_lines import DoCommand
from treadle.tui.session.slash import SlashCommands

BACK = CommandAnswer(ops=(Restore(files=False, conversation=True, to=7),), draft="fix it")


class Place:
    """The commands of a terminal, and what they did; each command that takes time gives the next answer."""

    def __init__(self, *answers: CommandAnswer) -> None:
        self.answers, self.done, self.posted = list(answers), list[str](), list[Op]()
        parts: dict[str, Any] = {
            "live": SimpleNamespace(trust=None),
            "screen": SimpleNamespace(give_back=self.done.append, written=str),
            "outbox": SimpleNamespace(put=self.posted.append),
            "pickers": SimpleNamespace(choose_model=lambda: self.done.append("models"), choose_turn=self._choose_turn),
            "aside": SimpleNamespace(start=lambda work, done, instead: done(self.answers.pop(0))),
            "show": lambda *items: None,
        }
        unused: dict[str, Any] = dict.fromkeys(("requests", "view", "failed", "switch"))
        self.commands = SlashCommands(**parts, **unused)

    def _choose_turn(self, command: str, do: Callable[[DoCommand], None]) -> None:
        do(DoCommand(command, "1 conversation", then_model=True))

    def rewound(self, to: int) -> list[str]:
        self.commands.hear(ConversationRewound(to=to))
        return self.done


def test_another_command_meanwhile_does_not_drop_what_follows() -> None:
    async def drive() -> None:
        place = Place(BACK, CommandAnswer(text="$0.02"))
        place.commands.run("/rewind", steer=False)
        place.commands.run("/cost", steer=False)
        assert (place.posted, place.rewound(3)) == ([*BACK.ops], [])  # somebody else went back
        assert place.rewound(7) == ["fix it", "models"]
        assert place.rewound(7) == ["fix it", "models"]

    run_at_once(drive())


def test_the_last_way_back_that_was_asked_for_counts() -> None:
    async def drive() -> None:
        place = Place(BACK, CommandAnswer(ops=(Restore(files=False, conversation=True, to=4),), draft="look"))
        place.commands.run("/rewind", steer=False)
        place.commands.run("/rewind 1 conversation", steer=False)
        assert place.rewound(4) == ["look"]
        assert place.rewound(7) == ["look"]

    run_at_once(drive())


def test_what_takes_long_goes_on_beside_the_work_and_is_answered_once() -> None:
    async def drive() -> None:
        shown = asyncio.Event()

        async def later() -> CommandAnswer:
            await shown.wait()
            return BACK

        place = Place(CommandAnswer(text="It runs.", later=later))
        going = asyncio.create_task(place.commands.go_on())
        place.commands.run("/review", steer=False)
        await asyncio.sleep(1)
        assert place.posted == []
        shown.set()
        await asyncio.sleep(1)
        assert place.posted == [*BACK.ops]
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)

    run_at_once(drive())
