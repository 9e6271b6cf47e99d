"""What a surface begins with: the view of a session that was resumed, and the end of its story."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.app.session.live import Status
from treadle.protocol.notifications import Notification
from treadle.tui.items import CallDone, Diff, Item, Notice, Prose, Reads, Said, TurnDone
from treadle.tui.view import View, update

_SHOWN = 12


def first_view(
    past: Sequence[Notification], opening: Sequence[Notification], status: Status, roots: tuple[str, ...]
) -> tuple[View, tuple[Item, ...]]:
    """Build the view from the past, what was told while the session was taken up, and the present status.

    Gives the last items of the story; the question that is open is asked by whoever shows them.
    """
    view, items = View(roots=roots), list[Item]()
    for told in past:
        view, shown = update(view, told)
        items += [item for item in shown if isinstance(item, Said | Prose | CallDone | Reads | TurnDone)]
    left_out = len(items) - _SHOWN
    for told in opening:
        view, shown = update(view, told)
        items += [item for item in shown if not isinstance(item, Diff)]
    view = replace(
        view,
        phase=status.phase,
        mode=status.mode,
        model=status.model,
        tokens=status.tokens,
        window=status.window,
        busy=status.turn_active,
        queue=status.queue,
        questions=status.questions,
    )
    if left_out <= 0:
        return view, tuple(items)
    return view, (Notice(f"… {left_out:,} earlier items of this session …"), *items[left_out:])
