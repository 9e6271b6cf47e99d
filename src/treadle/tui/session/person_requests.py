"""What the person wants the session to do: messages that are sent, wait, are held or taken back, and stopping."""

import uuid
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.commands import asked_beside
from treadle.door.open_session import Ended
from treadle.present.items import SaidItem
from treadle.present.view import SessionView
from treadle.present.words import written_text
from treadle.protocol.events import Delivery, EditQueued, Interrupt, MoveQueued, Op, Prompt
from treadle.protocol.messages import UserContent
from treadle.protocol.notifications import Phase, QueuedPrompt
from treadle.tui.draft.draft_pieces import Pieces
from treadle.tui.paint.printed_items import PrintedItem
from treadle.tui.session.outbox import Outbox
from treadle.tui.session.own_commands import OwnCommands


class Written(Struct, frozen=True):
    """A message as it was written: its draft, and the person's own commands that go with it."""

    draft: str
    commands: tuple[Ended, ...] = ()


class Requests:
    """Messages on their way to the session. `held` are those that a stop has the person decide about."""

    def __init__(self, outbox: Outbox, view: Callable[[], SessionView], pieces: Pieces, commands: OwnCommands) -> None:
        self._outbox = outbox
        self._view = view
        self._pieces = pieces
        self._commands = commands
        self._written: dict[str, Written] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """The held messages as text."""
        return tuple(self.shown(prompt.id, prompt.content) for prompt in self._view().held)

    def shown(self, prompt_id: str, content: tuple[UserContent, ...]) -> str:
        """Write a message as it was written, with its pieces folded."""
        written = self._written.get(prompt_id)
        return written_text(content) if written is None else self._pieces.shown(written.draft)

    def as_written(self, items: Sequence[PrintedItem]) -> list[PrintedItem]:
        """Show messages that went to the model as they were written."""
        return [self._as_written(item) if isinstance(item, SaidItem) else item for item in items]

    def _as_written(self, item: SaidItem) -> SaidItem:
        written = self._written.pop(item.prompt_id, None)
        return item if written is None else replace(item, text=self._pieces.shown(written.draft))

    def say(self, draft: str, delivery: Delivery = Delivery.QUEUE, first: Sequence[Op] = ()) -> None:
        """Send a draft, with what the person's own commands printed since the last message, once `first` is done.

        That does not go with a question beside the work, which is no message.
        """
        written = Written(draft, () if asked_beside(draft) else self._commands.take())
        blocks = tuple(command.block for command in written.commands)
        prompt_id = uuid.uuid4().hex
        self._written[prompt_id] = written
        content = (*blocks, *self._pieces.content(written.draft))
        self._outbox.put(Prompt(id=prompt_id, content=content, delivery=delivery), first)

    def send(self, content: tuple[UserContent, ...]) -> None:
        """Send a message."""
        self._outbox.put(Prompt(id=uuid.uuid4().hex, content=content))

    def take_back(self, waiting: QueuedPrompt) -> str:
        """Take a message out of the queue; gives its draft."""
        self._outbox.put(EditQueued(prompt_id=waiting.id))
        return self.draft_of(waiting.id, waiting.content)

    def draft_of(self, prompt_id: str, content: tuple[UserContent, ...]) -> str:
        """Give a message that is not sent as a draft again; the commands that went with it wait for the next one."""
        written = self._written.pop(prompt_id, None)
        if written is None:
            return self._pieces.draft_of(content)
        self._commands.take_back(written.commands)
        return written.draft

    def can_stop(self) -> bool:
        """Whether something works, or is about to, that can be stopped."""
        view = self._view()
        works = view.works or self._outbox.has_prompts
        return works and view.phase is not Phase.CANCELLING

    def stop(self) -> None:
        """Stop the turn, and hold what waits: stopping starts nothing."""
        self._outbox.put(Interrupt(hold=True))

    def send_held(self) -> None:
        """Send the next held message."""
        for prompt in self._view().held[:1]:
            self._outbox.put(MoveQueued(prompt_id=prompt.id, delivery=Delivery.QUEUE))

    def drop_held(self) -> None:
        """Forget the next held message."""
        for prompt in self._view().held[:1]:
            self.take_back(prompt)
