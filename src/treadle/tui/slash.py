"""Lines that the person entered: commands are done, everything else is sent."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, assert_never

from treadle.app.presentation.escape import exact
from treadle.app.presentation.words import describe_allowance
from treadle.app.security.trusting import trust_report
from treadle.app.session.access import SessionAccess
from treadle.protocol.events import RevokeAllowance, SetMode
from treadle.protocol.permissions import Allowance
from treadle.tui.bottom import queue_text
from treadle.tui.commands import (
    HELP,
    ChooseModel,
    ChooseSession,
    DropPrompt,
    EditPrompt,
    ListApprovals,
    ListQueue,
    Quit,
    Revoke,
    SendPrompt,
    ShowChecklist,
    ShowHelp,
    ShowTrust,
    UseMode,
    UseModel,
    Wrong,
    as_table,
    parse_input,
)
from treadle.tui.items import NoticeItem, Said, Tone
from treadle.tui.menus import keys_text
from treadle.tui.outbox import Outbox
from treadle.tui.requests import Requests
from treadle.tui.view import View


class _Editor(Protocol):
    """Where the person writes."""

    def put(self, draft: str) -> None:
        """Replace the draft."""
        ...

    def written(self, draft: str) -> str:
        """Give a draft as it is shown."""
        ...

    def leave(self, code: int) -> None:
        """End the session with this exit code."""
        ...


class _Lists(Protocol):
    """The lists to choose a model or a session from."""

    def choose_model(self) -> None:
        """Open the list of models."""
        ...

    def choose_session(self, typed: str) -> None:
        """Open the list of sessions, of those that a text fits."""
        ...


class SlashCommands:
    """Runs the commands of one session; what they answer is given to `show`."""

    def __init__(  # noqa: PLR0917 - the parts of one surface
        self,
        live: SessionAccess,
        screen: _Editor,
        outbox: Outbox,
        requests: Requests,
        pickers: _Lists,
        show: Callable[..., None],
        view: Callable[[], View],
    ) -> None:
        self._live = live
        self._screen = screen
        self._outbox = outbox
        self._requests = requests
        self._pickers = pickers
        self._show = show
        self._view = view

    def run(self, text: str, *, steer: bool) -> None:  # noqa: C901 - one line for each command
        """Do what a line asks for, or send it."""
        command = parse_input(text, steer=steer)
        if not isinstance(command, SendPrompt | ChooseModel | ChooseSession):
            self._show(Said(self._screen.written(text).strip(), quiet=True))
        match command:
            case SendPrompt(text=said, delivery=delivery):
                self._requests.say(said, delivery)
            case ListQueue() | ShowTrust() | ShowChecklist() | ListApprovals() | ShowHelp():
                self._show(NoticeItem(self._answer(command)))
            case DropPrompt(position=position) | EditPrompt(position=position):
                self._take_back(position, edit=isinstance(command, EditPrompt))
            case UseMode(mode=mode):
                self._outbox.put(SetMode(mode=mode))
            case ChooseModel() | ChooseSession():
                self._choose(command)
            case UseModel(name=name):
                self._outbox.put_made(lambda: self._live.choose(name))
            case Revoke(position=position):
                self._revoke(position)
            case Quit():
                self._screen.leave(0)
            case Wrong(text=why):
                self._show(NoticeItem(why, Tone.WARNING))
            case _:
                assert_never(command)

    def _choose(self, command: ChooseModel | ChooseSession) -> None:
        if isinstance(command, ChooseModel):
            self._pickers.choose_model()
        else:
            self._pickers.choose_session(command.text)

    def _answer(self, command: ListQueue | ShowTrust | ShowChecklist | ListApprovals | ShowHelp) -> str:
        match command:
            case ListQueue():
                return queue_text(self._view().queue)
            case ShowTrust():
                return trust_report(self._live.trust)
            case ShowChecklist():
                return _checklist(self._view().checklist, self._live.checklist_file)
            case ListApprovals():
                return _allowed(self._view().allowances)
            case ShowHelp():
                return f"{as_table(HELP)}\n\n{keys_text()}"
            case _:
                assert_never(command)

    def _take_back(self, position: int, *, edit: bool) -> None:
        if position > len(self._view().queue):
            self._show(NoticeItem(queue_text(self._view().queue), Tone.WARNING))
            return
        text = self._requests.take_back(self._view().queue[position - 1])
        if edit:
            self._screen.put(text)

    def _revoke(self, position: int) -> None:
        allowed = self._view().allowances
        if position <= len(allowed):
            self._outbox.put(RevokeAllowance(allowance_id=allowed[position - 1].id))
        else:
            self._show(NoticeItem(_allowed(allowed), Tone.WARNING))


def _allowed(allowances: Sequence[Allowance]) -> str:
    if not allowances:
        return "Nothing is allowed for this session beyond its mode and your rules (`treadle policy show`)."
    return "\n".join(f"{number}: {exact(describe_allowance(one))}" for number, one in enumerate(allowances, start=1))


def _checklist(text: str, file: Path) -> str:
    return f"{text}\n({file} holds it. You can change it there.)" if text else "The task has no checklist yet."
