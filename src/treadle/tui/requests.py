"""What the person wants the session to do: messages that are sent, wait, are held or taken back, and stopping."""

import uuid
from collections.abc import Callable

from treadle.app.presentation.words import plain
from treadle.protocol.events import Delivery, EditQueued, Interrupt, Prompt
from treadle.protocol.messages import Text, UserContent
from treadle.protocol.notifications import Phase, QueuedPrompt
from treadle.tui.outbox import Outbox
from treadle.tui.view import View


class Requests:
    """Messages on their way to the session. `held` are those that a stop took out of the queue, the next one first."""

    def __init__(self, outbox: Outbox, view: Callable[[], View]) -> None:
        self._outbox = outbox
        self._view = view
        self._steered: set[str] = set()
        self._held: list[QueuedPrompt] = []

    @property
    def held(self) -> tuple[str, ...]:
        """The held messages as text."""
        return tuple(plain(prompt.content) for prompt in self._held)

    @property
    def steered(self) -> frozenset[str]:
        """Ids of messages that go at the next step."""
        return frozenset(self._steered)

    def say(self, text: str, delivery: Delivery = Delivery.QUEUE) -> None:
        """Send a message of text."""
        self.send((Text(text=text),), delivery)

    def send(self, content: tuple[UserContent, ...], delivery: Delivery = Delivery.QUEUE) -> None:
        """Send a message."""
        prompt = Prompt(id=uuid.uuid4().hex, content=content, delivery=delivery)
        if delivery is Delivery.STEER:
            self._steered.add(prompt.id)
        self._outbox.put(prompt)

    def take_back(self, waiting: QueuedPrompt) -> str:
        """Take a message out of the queue; gives its text."""
        self._outbox.put(EditQueued(prompt_id=waiting.id))
        return plain(waiting.content)

    def can_stop(self) -> bool:
        """Whether something works, or is about to, that can be stopped."""
        view = self._view()
        return (view.busy or self._outbox.has_prompts) and view.phase is not Phase.CANCELLING

    def stop(self) -> None:
        """Stop the turn, and hold what waits: stopping starts nothing."""
        for waiting in self._view().queue:
            self._outbox.put(EditQueued(prompt_id=waiting.id))
            self._held.append(waiting)
        self._outbox.put(Interrupt())

    def send_held(self) -> None:
        """Send the next held message."""
        if self._held:
            self.send(self._held.pop(0).content)

    def drop_held(self) -> None:
        """Forget the next held message."""
        if self._held:
            self._held.pop(0)
