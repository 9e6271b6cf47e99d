"""Lines that the person entered: commands are done, everything else is sent."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, assert_never

from msgspec import Struct

from treadle.door.commands import NEW_SESSION, do_command, find_slash, named_texts
from treadle.door.open_session import SessionAccess
from treadle.door.settings import Colours
from treadle.present.items import NoteItem
from treadle.present.view import SessionView
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.notifications import ConversationRewound, Notification
from treadle.tui.draft.clipboard import clean_text, copied_words, fill_clipboard
from treadle.tui.draft.menus import keys_text
from treadle.tui.paint.printed_items import ContextItem, DiffItem, EnteredCommand
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import (
    AddKey,
    ChooseModel,
    ChooseSession,
    ChooseTurn,
    DoCommand,
    DropPrompt,
    EditPrompt,
    Quit,
    SendPrompt,
    ShowHelp,
    StartSession,
    Wrong,
    parse_input,
    recorded_line,
)
from treadle.tui.session.outbox import Outbox
from treadle.tui.session.person_requests import Requests

if TYPE_CHECKING:
    from treadle.door.commands import CommandAnswer, TextToEdit

_BUSY = "Treadle is still working in this session. Stop it first: esc stops."
_ELSEWHERE = "A new session cannot be started from here. To start one: treadle"


class _Editor(Protocol):
    """Where the person writes; `own_keys` are further keys by their actions."""

    own_keys: Mapping[str, str]

    def put(self, draft: str) -> None:
        """Replace the draft."""
        ...

    def give_back(self, draft: str) -> None:
        """Put what was not sent, or taken back, before what is being written."""
        ...

    def written(self, draft: str) -> str:
        """Give a draft as it is shown."""
        ...

    def copy(self, text: str) -> bool:
        """Let the terminal copy a text; gives whether it was sent."""
        ...

    def recolour(self, colours: Colours, said: Callable[[str], None]) -> None:
        """Draw in other colours from now on; `said` takes why they cannot be seen here, if so."""
        ...

    def leave(self, code: int) -> None:
        """End the session with this exit code."""
        ...

    def edit(
        self, text: str, suffix: str, *, done: Callable[[str], None], failed: Callable[[ConfigError], None]
    ) -> None:
        """Lend the terminal to the person's editor; `done` takes what became of the text."""
        ...


class _Lists(Protocol):
    """The lists to choose a model, a session or a turn from."""

    def choose_model(self) -> None:
        """Open the list of models."""
        ...

    def choose_session(self, typed: str) -> None:
        """Open the list of sessions, of those that a text fits."""
        ...

    def add_key(self, named: str) -> None:
        """Ask for a provider's key, and whose it is where that is not said."""
        ...

    def choose_turn(self, command: str, do: Callable[[DoCommand], None]) -> None:
        """Open the list of turns; the command is done with the one that is taken."""
        ...


class _Back(Struct, frozen=True):
    """What follows once the conversation is as after event `to`: the message to write anew, and another model."""

    to: int
    draft: str
    then_model: bool


class SlashCommands:
    """Runs the commands of one session; what they answer is given to `show`.

    `switch` takes the session that is to be opened in the place of this one; None where none can be.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of one surface
        self,
        live: SessionAccess,
        screen: _Editor,
        outbox: Outbox,
        requests: Requests,
        pickers: _Lists,
        aside: Aside,
        show: Callable[..., None],
        view: Callable[[], SessionView],
        failed: Callable[[TreadleError], None],
        switch: Callable[[str], None] | None,
    ) -> None:
        self._live = live
        self._screen = screen
        self._outbox = outbox
        self._requests = requests
        self._pickers = pickers
        self._aside = aside
        self._show = show
        self._view = view
        self._failed = failed
        self._switch = switch
        self._back: _Back | None = None
        self._later: asyncio.Queue[Callable[[], Awaitable[CommandAnswer]]] = asyncio.Queue()

    def hear(self, notification: Notification) -> None:
        """Give the message back before which the conversation is now, to be sent again in other words."""
        back = self._back
        if isinstance(notification, ConversationRewound) and back is not None and notification.to == back.to:
            self._back = None
            if back.draft:
                self._screen.give_back(back.draft)
            if back.then_model:
                self._pickers.choose_model()

    async def go_on(self) -> None:
        """Let commands that take long go on beside the work, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                later = await self._later.get()
                group.create_task(self._wait(later), name="command beside the work")

    async def _wait(self, later: "Callable[[], Awaitable[CommandAnswer]]") -> None:
        try:
            self._answered(await later())
        except TreadleError as error:
            self._failed(error)

    def run(self, text: str, *, steer: bool) -> None:  # noqa: C901 - one line for each command
        """Do what a line asks for, or send it."""
        command = parse_input(text, steer=steer, named=self._named)
        if not isinstance(command, SendPrompt | ChooseModel | ChooseSession | ChooseTurn):
            self._show(EnteredCommand(recorded_line(self._screen.written(text).strip())))
        match command:
            case SendPrompt(text=said, delivery=delivery):
                self._requests.say(said, delivery)
            case DoCommand():
                self._do(command)
            case DropPrompt(position=position) | EditPrompt(position=position):
                self._take_back(position, edit=isinstance(command, EditPrompt))
            case ChooseModel():
                self._pickers.choose_model()
            case ChooseSession(text=words):
                self._pickers.choose_session(words)
            case ChooseTurn(command=name):
                self._pickers.choose_turn(name, self._do)
            case AddKey(provider=provider):
                self._pickers.add_key(provider)
            case StartSession():
                self._start_session()
            case ShowHelp():
                self._show(NoteItem(f"{do_command('help', '', self._live).text}\n\n{keys_text(self._screen.own_keys)}"))
            case Quit():
                self._screen.leave(0)
            case Wrong(text=why, kept=kept):
                self._show(NoteItem(why, warns=True))
                if kept:
                    self._screen.give_back(text)
            case _:
                assert_never(command)

    def _named(self) -> Collection[str]:
        return [one.name for one in named_texts(self._live.trust)]

    def _do(self, command: DoCommand) -> None:
        work = partial(do_command, command.name, command.argument, self._live)
        row = find_slash(command.name)
        if row is not None and row.takes_time:
            self._aside.start(work, partial(self._answered, then_model=command.then_model), None)
            return
        try:
            self._answered(work())
        except ConfigError as error:
            self._failed(error)

    def _answered(self, answer: "CommandAnswer | None", *, then_model: bool = False) -> None:
        if answer is None:
            return
        self._show_answer(answer)
        if answer.opens:
            self._continue_in(answer.opens)
        if answer.colours is not None:
            self._screen.recolour(answer.colours, self._said)
        if answer.later is not None:
            self._later.put_nowait(answer.later)
        for op in answer.ops:
            if isinstance(op, Restore) and op.conversation:
                self._back = _Back(op.to, answer.draft, then_model)
            if not answer.send:
                self._outbox.put(op)
        if answer.send:
            self._requests.say(answer.send, first=answer.ops)

    def _show_answer(self, answer: "CommandAnswer") -> None:
        if answer.context is not None:
            self._show(ContextItem(answer.context))
        if answer.copies:
            self._copy(answer.text, answer.copies)
        elif answer.edit is not None:
            self._edit(answer.edit)
        elif answer.diff:
            above = answer.text.removesuffix(answer.diff).rstrip()
            self._show(*((NoteItem(above),) if above else ()), DiffItem(answer.diff))
        elif answer.text:
            self._show(NoteItem(answer.text, warns=answer.warning))

    def _continue_in(self, session: str) -> None:
        if self._switch is None:
            self._show(NoteItem(f"To continue there: treadle --resume {session}"))
            return
        self._switch(session)
        self._screen.leave(0)

    def _copy(self, what: str, text: str) -> None:
        clean, left_out = clean_text(text)
        sent = self._screen.copy(clean)

        def copied(program: str) -> None:
            words = copied_words(what, clean, left_out, program=program, terminal=sent)
            self._show(NoteItem(words, warns=not (program or sent)))

        self._aside.start(partial(fill_clipboard, clean), copied, "")

    def _edit(self, wanted: "TextToEdit") -> None:
        def edited(text: str) -> None:
            self._aside.start(lambda: wanted.save(text), self._said, "")

        self._screen.edit(wanted.text, wanted.suffix, done=edited, failed=self._failed)

    def _said(self, text: str) -> None:
        if text:
            self._show(NoteItem(text))

    def _start_session(self) -> None:
        if self._switch is None or self._live.continues:
            self._show(NoteItem(_ELSEWHERE, warns=True))
        elif self._view().active:
            self._show(NoteItem(_BUSY, warns=True))
        else:
            self._switch(NEW_SESSION)
            self._screen.leave(0)

    def _take_back(self, position: int, *, edit: bool) -> None:
        if position > len(self._view().waiting):
            self._show(NoteItem(do_command("queue", "", self._live).text, warns=True))
            return
        text = self._requests.take_back(self._view().waiting[position - 1])
        if edit:
            self._screen.put(text)
