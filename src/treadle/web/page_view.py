"""The page of one session: its items, each with the version it changed in, and what browsers have to know besides."""

import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from treadle.present.call_words import answer_words
from treadle.present.item_book import ItemBook, is_settled, with_begun_reply
from treadle.present.items import CallItem, Placed, ProblemItem
from treadle.present.job_words import job_begun
from treadle.present.view import SessionView, WayBack
from treadle.present.words import elsewhere
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import Message, Text, ToolUse
from treadle.protocol.notifications import (
    ConversationRewound,
    FilesRestored,
    MessageDone,
    Notification,
    PromptDelivered,
    QuestionClosed,
)
from treadle.protocol.permissions import OptionKind
from treadle.web.item_html import CallNote, Undone, is_shown, item_html, note_of_call
from treadle.web.seen_jobs import SeenJob, look_at_jobs

_MOST_ANSWERED = 200

_LOOKED_AT, _JUST_BEFORE = 40, 3
"""Items at the end in which calls are looked for, and calls that are shown beside a question."""


class PageContent(ItemBook):
    """Takes notifications one after the other. `root` is the workspace, as seen from which files are named.

    Unless the session `is_open` nothing of it goes on; `session` is its id, for links. `answered` says of the last
    questions how and where they were answered; `delivered` are the ids of prompts. `raised`: somebody said yes to
    more than a budget.
    """

    def __init__(self, root: str, model: str = "", *, is_open: bool = True, session: str = "") -> None:
        super().__init__(SessionView(root=root, model=model))
        self.run = f"{time.time_ns():x}"  # a browser that knows another one's versions begins anew
        self.answered: OrderedDict[str, str] = OrderedDict()
        self.delivered: set[str] = set()
        self.raised = False
        self._words: dict[str, str] = {}
        self._is_open, self._session = is_open, session
        self._html: dict[int, tuple[int, str]] = {}
        self._steps: list[tuple[int, int]] = []
        """The event of each step's reply, and its number."""
        self._back: WayBack | None = None
        """The last way back, until the session works on."""
        self._begun: dict[int, int] = {}
        """Where the calls are that left something in the background, by its number."""
        self._jobs: dict[int, SeenJob | None] = {}

    @property
    def version(self) -> int:
        """The version in which the page is."""
        return self.view.version

    def take(self, stamped: Stamped) -> Sequence[Placed]:
        """Take a notification; gives the items that changed."""
        match stamped.notification:
            case PromptDelivered(prompt_id=prompt_id):
                self.delivered.add(prompt_id)
            case QuestionClosed() as closed:
                self._note_answer(closed)
            case MessageDone(message=message, step=step):
                self._words = dict(_words_before(message))
                self._steps.append((stamped.seq, step))
            case _:
                pass
        changed = super().take(stamped)
        for placed in changed:
            if isinstance(placed.item, CallItem) and (number := job_begun(placed.item.changed)):
                self._begun[number] = placed.position
        return (*changed, *self._follow_way_back(stamped.notification))

    def _follow_way_back(self, notification: Notification) -> Sequence[Placed]:
        """Note whether the last way back can be undone; gives the items that say so no more."""
        match notification:
            case ConversationRewound():
                self._back = self.view.cuts[-1]
            case PromptDelivered() | MessageDone() | FilesRestored(conversation=False) if self._back is not None:
                self._back = None
                begun = [replace(one, version=self.view.version) for one in self._items if self._begun_undone(one)]
                self._keep(begun)
                return begun
            case _:
                pass
        return ()

    @property
    def has_jobs(self) -> bool:
        """Whether a call left something in the background of which the end is not known."""
        known = self._jobs
        return any(number not in known or ((job := known[number]) and job.line.running) for number in self._begun)

    def know_jobs(self, jobs: Mapping[int, SeenJob]) -> bool:
        """Take how the commands in the background stand; says whether a call shows something else now."""
        before = self._jobs
        self._jobs = {number: jobs.get(number) for number in self._begun}
        changed = [number for number, job in self._jobs.items() if number not in before or job != before[number]]
        for number in changed:
            placed = self._items[self._begun[number]]
            if placed.item is not None:
                self.show(placed.item, placed)
        return bool(changed)

    def _note_answer(self, closed: QuestionClosed) -> None:
        asked = next((one for one in self.view.questions if one.id == closed.question_id), None)
        if closed.option is None or asked is None:
            return
        self.raised = self.raised or (asked.raises and closed.option is OptionKind.ALLOW_ONCE)
        where = f" {elsewhere(closed.by)}" if closed.by else ""
        self.answered[closed.question_id] = f"Answered{where}: {answer_words(asked, closed)}."
        while len(self.answered) > _MOST_ANSWERED:
            self.answered.popitem(last=False)

    def words_before(self, call_id: str) -> str:
        """Give the words with which the model came to a call of its last reply: its last paragraph before it."""
        return self._words.get(call_id, "")

    def _moved_by(self, cuts: object) -> Iterator[Placed]:
        """Give also those items with which something undone begins, or did."""
        before = replace(self.view, cuts=cuts)
        above = above_before = False
        for placed in self._items:
            now, then = self.view.has_left(placed), before.has_left(placed)
            if now != then or (now and not (above and above_before)):
                yield replace(placed, version=self.view.version)
            if is_shown(placed):
                above, above_before = now, then

    def add_problem(self, error: TreadleError) -> None:
        """Say at the end what went wrong with the session itself."""
        self.show(ProblemItem(error.what, error.why, error.fix))

    def last_calls(self) -> Sequence[str]:
        """Give the last calls that are finished as HTML, the oldest first, to be shown elsewhere than on its page."""
        finished = [
            one for one in self.before(None, _LOOKED_AT) if isinstance(one.item, CallItem) and is_settled(one.item)
        ]
        return [self.html(one).replace(f' id="i{one.position}"', "", 1) for one in finished[-_JUST_BEFORE:]]

    def notes(self, calls: Collection[str]) -> Mapping[str, CallNote]:
        """Say what became of some calls, by their ids."""
        return {
            one.item.changed.call.id: note_of_call(one.item, self._job_of(one), is_open=self._is_open)
            for one in self.items()
            if isinstance(one.item, CallItem) and one.item.changed.call.id in calls
        }

    def html(self, placed: Placed) -> str:
        """Give an item as HTML; each version is made once, however many browsers look."""
        version, html = self._html.get(placed.position, (-1, ""))
        if version != placed.version:
            undone, job = self._begun_undone(placed), self._job_of(placed)
            html = item_html(placed, self.view, is_open=self._is_open, session=self._session, undone=undone, job=job)
            self._html[placed.position] = placed.version, html
        return html

    def _job_of(self, placed: Placed) -> SeenJob | None:
        number = job_begun(placed.item.changed) if isinstance(placed.item, CallItem) else 0
        return self._jobs.get(number) if self._begun.get(number) == placed.position else None

    def _begun_undone(self, placed: Placed) -> Undone | None:
        """Say what begins with an item that has left the conversation where the one that is shown above it has not."""
        cut = next((one for one in reversed(self.view.cuts) if one.to < placed.seq < one.seq), None)
        if cut is None:
            return None
        above = next(filter(is_shown, reversed(self.before(placed.position, _LOOKED_AT))), None)
        if above is not None and self.view.has_left(above):
            return None
        steps = [step for seq, step in self._steps if cut.to < seq < cut.seq]
        return Undone(steps=(steps[0], steps[-1]) if steps else None, can_return=bool(steps) and cut == self._back)


def _words_before(message: Message) -> Iterator[tuple[str, str]]:
    """Give the calls of a reply by their ids, each with the last paragraph above it."""
    said = ""
    for block in message.content:
        match block:
            case Text(text=text) if text.strip():
                said = text.strip().rpartition("\n\n")[2].strip()
            case ToolUse(id=call_id):
                yield call_id, said
            case _:
                pass


def page_content(
    root: str,
    model: str,
    past: Sequence[Stamped],
    live: Sequence[Notification] = (),
    *,
    is_open: bool = True,
    session: str = "",
) -> PageContent:
    """Make the page of what happened before, and of what is under way and in no log yet."""
    content = PageContent(root, model, is_open=is_open, session=session)
    for stamped in with_begun_reply(past, live):
        content.take(stamped)
    if content.has_jobs:
        content.know_jobs(look_at_jobs(session))
    return content
