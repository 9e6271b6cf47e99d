"""What a person says to a session on the page: messages, answers, and what goes on with both."""

import asyncio
import binascii
import uuid
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.door.commands import asked_beside
from treadle.door.known_models import EFFORT_BUDGETS
from treadle.door.message_parts import enclose, read_attached
from treadle.door.open_session import Reach
from treadle.door.opening import session_workspace
from treadle.protocol.errors import ConfigError, RefusedError, SessionError, TreadleError
from treadle.protocol.events import Delivery, EditQueued, Interrupt, MoveQueued, Prompt, SetMode
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, UserContent, without_own_commands
from treadle.protocol.permissions import Mode
from treadle.web.answering import GivenOnPage, answer_question
from treadle.web.entered import do_entered
from treadle.web.folder_trust import AnsweredTrust, folder_trust
from treadle.web.page_keys import Visitor
from treadle.web.page_requests import answer, body_of, book_of, done, opened_session, visitor_of
from treadle.web.page_session import PageSession
from treadle.web.rights import PageRoute

_MOST_FILES = 10
_MOST_TEXT = 2_000_000


class AttachedFile(Struct):
    """A file that goes along with a message; `data` is base64."""

    name: str
    data: str

    @property
    def named(self) -> str:
        """Its name as it is shown."""
        return self.name[:200] or "image"


class NewMessage(Struct):
    """A message; `trust` is what was said of its folder, and `seen` what the question about that showed."""

    text: str = ""
    id: str = ""
    steer: bool = False
    files: tuple[AttachedFile, ...] = ()
    trust: str = ""
    seen: str = ""


def check_size(said: NewMessage) -> None:
    """Raise `ConfigError` for a message that is too long."""
    if len(said.text) > _MOST_TEXT or len(said.files) > _MOST_FILES:
        raise ConfigError(
            "message-size",
            "The message is too long.",
            why=f"It has at most {_MOST_TEXT:,} characters and {_MOST_FILES} files.",
            fix="Put long texts into a file, and name the file.",
        )


async def _say(request: Request) -> Response:
    """Send a message, or do a slash command; a session that nobody has open is opened for it.

    What comes a second time with the same id, because its answer was lost, is not done again.
    """
    said = await body_of(request, NewMessage)
    check_size(said)
    opened = await _open(request, said.trust, said.seen)
    if isinstance(opened, dict):
        return answer({"trust": opened})
    who, key = visitor_of(request), said.id or uuid.uuid4().hex
    came = await opened.once(key, lambda: enter_message(said, key, opened, who))
    if said.text.startswith("/"):
        book_of(request).relist()  # a command may have given it another name
    return answer(came)


async def enter_message(said: NewMessage, prompt_id: str, session: PageSession, who: Visitor) -> dict[str, Any]:
    """Send a message, or do the command that it is; gives what is `shown` of it. Raises `TreadleError`.

    Files, and what own commands printed, go along with messages; with a command that sends none, or a question beside
    the work, files are `kept` for the next.
    """
    if session.has_prompt(prompt_id):
        return {"shown": ""}
    notes: list[str] = []
    entered = await do_entered(said.text, session, who)
    if not entered.send and said.text.strip():
        return {"shown": entered.shown, "kept": bool(said.files)}
    beside = bool(asked_beside(entered.send))
    images, enclosed = await _attached(() if beside else said.files, session, notes)
    if entered.send or images or enclosed:
        own = () if beside else session.commands.take()
        texts = (*(one.block for one in own), *((Text(text=entered.send),) if entered.send else ()))
        named = () if texts or images else (Text(text=", ".join(one.origin for one in enclosed)),)
        steers = said.steer or entered.steer or session.agent  # the end of its turn is the end of a subagent
        delivery = Delivery.STEER if steers else Delivery.QUEUE
        content = (*texts, *named, *images)
        try:
            await session.post(Prompt(id=prompt_id, content=content, delivery=delivery, enclosed=enclosed), who)
        except TreadleError:
            session.commands.take_back(own)
            raise
    shown = {"shown": "\n".join(filter(None, [entered.shown, *notes]))}
    return {**shown, "kept": True} if beside and said.files else shown


async def _attached(
    given: Sequence[AttachedFile], session: PageSession, notes: list[str]
) -> tuple[tuple[UserContent, ...], tuple[Enclosure, ...]]:
    """Read images, texts and documents; raises `ConfigError` for what is none of these, or no model sees."""
    images: list[UserContent] = []
    texts: list[Enclosure] = []
    for one in given:
        read = await _read(one, notes)
        if isinstance(read, str):
            texts.append(enclose(EnclosureKind.FILE, one.named, read))
        else:
            images.append(read)
    if images and not session.session.sees_images:
        raise ConfigError(
            "attachment",
            "The model cannot see images.",
            fix="Remove the image, or choose another model.",
        )
    return tuple(images), tuple(texts)


async def _read(given: AttachedFile, notes: list[str]) -> str | UserContent:
    try:
        raw = b64decode(given.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError("attachment", "A file cannot be read.", why=given.named, fix="Attach it again.") from error
    return await read_attached(raw, given.named, notes.append)


async def _look(request: Request) -> Response:
    """Say what is `wrong` with a file that is to go along, before it is sent."""
    try:
        await _read(await body_of(request, AttachedFile), [])
    except ConfigError as error:
        return answer({"wrong": error.why or error.what})
    return answer({"wrong": ""})


async def _open(request: Request, said: str, seen: str) -> PageSession | dict[str, Any]:
    """Give the session, opened if nobody has it open; before that, what the user says of its folder is asked for."""
    session_id = request.path_params["session_id"]
    book = book_of(request)
    known = await book.look_at(session_id)
    if known is not None:
        known.touch()
        return known
    workspace = await asyncio.to_thread(session_workspace, session_id)
    trust = await folder_trust(book, workspace, AnsweredTrust(said, seen), visitor_of(request))
    return trust if isinstance(trust, dict) else await book.resume(session_id, trust)


class _Trust(Struct):
    trust: str = ""
    seen: str = ""


async def _continue(request: Request) -> Response:
    """Open a session that nobody has open, without saying anything to it yet."""
    said = await body_of(request, _Trust)
    opened = await _open(request, said.trust, said.seen)
    return answer({"trust": opened}) if isinstance(opened, dict) else done()


async def _answer(request: Request) -> Response:
    """Answer a question; the first answer counts, from wherever it comes."""
    given = await body_of(request, GivenOnPage)
    late = await answer_question(given, opened_session(request), visitor_of(request))
    if not late:
        return done()
    return answer({"code": "answered", "what": late, "why": "", "fix": ""}, status=409)


class _Chosen(Struct):
    mode: Mode | None = None
    model: str = ""
    effort: str = ""


async def _change(request: Request) -> Response:
    """Change the mode, or the model and how much it thinks."""
    chosen = await body_of(request, _Chosen)
    session, who = opened_session(request), visitor_of(request)
    if chosen.mode is not None:
        await session.post(SetMode(mode=chosen.mode), who)
    if chosen.model:
        thinking = EFFORT_BUDGETS.get(chosen.effort)
        await session.post(await asyncio.to_thread(session.session.choose, chosen.model, thinking), who)
    return done()


class _Queued(Struct):
    id: str
    text: str | None = None
    send: Delivery = Delivery.QUEUE
    place: int | None = None


async def _queue(request: Request) -> Response:
    """Change a message that waits or is held, with an empty text remove it, or say when it is sent."""
    wanted = await body_of(request, _Queued)
    session, who = opened_session(request), visitor_of(request)
    status = session.session.status
    waiting = next((one for one in (*status.queue, *status.held) if one.id == wanted.id), None)
    if waiting is None:
        raise RefusedError("EditQueued", status.phase, "the message does not wait any more")
    if wanted.text is None:
        await session.post(MoveQueued(prompt_id=wanted.id, delivery=wanted.send, place=wanted.place), who)
        return done()
    content = (*beside_words(waiting.content), Text(text=wanted.text)) if wanted.text.strip() else ()
    await session.post(EditQueued(prompt_id=wanted.id, content=content, keeps=True), who)
    return done()


def beside_words(content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
    """Give what goes along with the words of a message: images, and the output of the person's own commands."""
    words = without_own_commands(content)
    return tuple(block for block in content if not isinstance(block, Text) or block not in words)


class _Command(Struct):
    number: int


async def _stop_command(request: Request) -> Response:
    """Stop a command of the person's own."""
    wanted = await body_of(request, _Command)
    if not opened_session(request).commands.stop(wanted.number):
        raise SessionError("command-ended", "This command has ended already.")
    return done()


async def _interrupt(request: Request) -> Response:
    """Stop what is going on. Stopping starts nothing: what waited is held, to be sent or not."""
    await opened_session(request).post(Interrupt(hold=True), visitor_of(request))
    return done()


async def _close(request: Request) -> Response:
    """Close a session of this process."""
    session = opened_session(request)
    if not session.own:
        raise SessionError(
            "session-elsewhere",
            "This session is open in another program.",
            why="The page only follows it.",
            fix="Close it there.",
        )
    await session.stop(visitor_of(request))
    await book_of(request).close(session.session.id)
    return done()


ROUTES = (
    PageRoute("/attached", _look, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/say", _say, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/open", _continue, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/answer", _answer, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/change", _change, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/queue", _queue, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/interrupt", _interrupt, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/commands/stop", _stop_command, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/close", _close, Reach.WORK, methods=["POST"]),
)
