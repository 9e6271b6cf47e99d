"""What a surface begins with: the view of a session that was resumed, and the end of its past."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.app.session.access import SessionAccess
from treadle.protocol.attach import SessionStatus, Stamped
from treadle.protocol.notifications import Notification
from treadle.tui.items import CallDone, DiffItem, NoticeItem, Prose, Reads, Said, ScreenItem, TurnDone
from treadle.tui.view import View, update

_SHOWN = 12


def new_view(live: SessionAccess) -> View:
    """Give a view of a session in which nothing has happened yet."""
    return View(own=live.source.name, roots=(str(live.workspace), *live.roots))


def first_view(
    view: View, past: Sequence[Stamped], opening: Sequence[Notification], status: SessionStatus
) -> tuple[View, tuple[ScreenItem, ...]]:
    """Bring a new view up to date: by the past, the notifications of its opening, and the present status.

    Gives the last items of the past; the question that is open is asked by whoever shows them.
    """
    items: list[ScreenItem] = []
    for stamped in past:
        view, shown = update(view, stamped.notification)
        items += [item for item in shown if isinstance(item, Said | Prose | CallDone | Reads | TurnDone)]
    left_out = len(items) - _SHOWN
    for notification in opening:
        view, shown = update(view, notification)
        items += [item for item in shown if not isinstance(item, DiffItem)]
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
        allowances=status.allowances,
    )
    if left_out <= 0:
        return view, tuple(items)
    return view, (NoticeItem(f"… {left_out:,} earlier items of this session …"), *items[left_out:])
