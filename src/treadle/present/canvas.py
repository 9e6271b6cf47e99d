"""One notification on its way into a view: what it changes, and the items that it puts somewhere."""

from typing import Any

from msgspec.structs import replace

from treadle.present.items import CallItem, Item, Placed
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import CallStatus
from treadle.protocol.tools import Flow


class Canvas:
    """The view as it becomes, and the items that `changed`.

    `at` is when what is folded happened (s since 1970), `before` when the last thing did whose time is known.
    """

    def __init__(self, view: SessionView, stamped: Stamped | None) -> None:
        self.at = None if stamped is None or not stamped.at else stamped.at / 1000
        seq = view.seq if stamped is None else max(view.seq, stamped.seq)
        # What is in no log yet comes before the next event.
        self._item_seq = seq if stamped is not None and stamped.seq else seq + 1
        self.before = view.heard
        heard = view.heard if self.at is None else self.at
        self.view = replace(view, version=view.version + 1, seq=seq, heard=heard)
        self._changed: dict[int, Placed] = {}

    @property
    def changed(self) -> tuple[Placed, ...]:
        """The items that changed, in their order."""
        return tuple(self._changed[position] for position in sorted(self._changed))

    def add(self, item: Item) -> Placed:
        """Put an item behind all others."""
        placed = Placed(self.view.places, self.view.version, self._item_seq, item)
        self.view = replace(self.view, places=self.view.places + 1)
        self._changed[placed.position] = placed
        return placed

    def change(self, placed: Placed, item: Item | None) -> Placed:
        """Change an item where it stands; None takes it away."""
        placed = replace(placed, item=item, version=self.view.version)
        self._changed[placed.position] = placed
        calls = self.view.calls
        if any(one.position == placed.position for one in calls):
            calls = tuple(placed if one.position == placed.position else one for one in calls)
            self.view = replace(self.view, calls=calls)
        return placed

    def know(self, **facts: Any) -> None:
        """Note what is true of the session now."""
        self.view = replace(self.view, known_at=self.view.version, **facts)

    def set_reply(self, **facts: Any) -> None:
        """Note how the reply that streams stands."""
        self.view = replace(self.view, reply=replace(self.view.reply, **facts))

    def add_beside(self, item: Item) -> None:
        """Put something that is not the reply's behind it, also while it is awaited: no log tells how far it was."""
        if self.view.awaiting:
            self.view = replace(self.view, beside=(*self.view.beside, item))
        else:
            self.add(item)

    def await_reply(self, awaiting: bool) -> None:  # noqa: FBT001 - it says what is so
        """Note whether a reply is awaited now; show what came beside the one before."""
        beside = self.view.beside
        self.view = replace(self.view, awaiting=awaiting, beside=())
        for item in beside:
            self.add(item)

    def add_to_reply(self, item: Item) -> Placed:
        """Put an item behind all others that goes when the reply does not count."""
        placed = self.add(item)
        self.set_reply(items=self.view.reply.items_with(placed))
        return placed

    def open_call(self, item: CallItem) -> None:
        """Show a call, and follow it until it has its result.

        One that does not run is shown only if it failed: until then its place is kept.
        """
        placed = self.add_to_reply(item) if self.view.reply.heard else self.add(item)
        if item.changed.status is CallStatus.FINISHED:
            return
        if item.changed.flow is not Flow.RUN:
            silent = {**self.view.silent, item.changed.call.id: self.change(placed, None)}
            self.view = replace(self.view, silent=silent)
        else:
            self.view = replace(self.view, calls=(*self.view.calls, placed))

    def show_proposed(self, call_id: str) -> None:
        """Show a call whose place is known now."""
        item = next((one for one in self.view.proposed if one.changed.call.id == call_id), None)
        if item is not None:
            self.view = replace(self.view, proposed=tuple(one for one in self.view.proposed if one is not item))
            self.open_call(item)

    def show_all_proposed(self) -> None:
        """Show all calls whose place was not known."""
        for item in self.view.proposed:
            self.show_proposed(item.changed.call.id)
