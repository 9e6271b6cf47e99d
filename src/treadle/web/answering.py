"""What a browser answers to a question: the first answer counts, and whoever comes later hears whose it was."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from treadle.door.open_session import block_spans, keep_blocks, with_block_texts
from treadle.present.answer_rows import BLOCKS_ARGUMENT, can_be_changed, edits_mode_allows
from treadle.present.forms import typed_values
from treadle.protocol.errors import ConfigError, RefusedError
from treadle.protocol.events import Answer, SetMode
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.web.page_keys import Visitor
from treadle.web.page_session import PageSession

_HEARD_WITHIN = 1.0
"""Seconds until the page has heard how a question was answered that is not open any more."""


class GivenOnPage(Struct):
    """An answer as a browser sends it. `edits`: the session goes to the mode edits with it.

    A call is changed by `changed`, the text of its argument `name` or without one all arguments as JSON, by `texts`,
    the new text of each block of an edit, or by `blocks`, which of these are kept. `fields` are those of a form, as
    they were typed.
    """

    question_id: str
    option: OptionKind
    text: str = ""
    scope: AllowScope = AllowScope.SESSION
    edits: bool = False
    name: str = ""
    changed: str | None = None
    texts: list[str] | None = None
    blocks: list[bool] | None = None
    fields: dict[str, str] | None = None


async def answer_question(given: GivenOnPage, session: PageSession, who: Visitor) -> str:
    """Answer; gives who was faster, in words, where somebody was. Raises `ConfigError`, `RefusedError`."""
    question = next((one for one in session.questions if one.id == given.question_id), None)
    if question is None:
        return await _answered(session, given.question_id)
    answer = Answer(
        question_id=given.question_id,
        option=given.option,
        text=given.text,
        scope=given.scope,
        arguments=_arguments(given, question),
    )
    if given.blocks is not None and not any(given.blocks):
        answer = Answer(question_id=given.question_id, option=OptionKind.REJECT_ONCE, text=given.text)
    try:
        if given.edits and edits_mode_allows(question, session.session.status.mode):
            await session.post(SetMode(mode=Mode.EDITS), who)
        await session.post(answer, who)
    except RefusedError:
        if any(one.id == given.question_id for one in session.questions):
            raise
        return await _answered(session, given.question_id)
    return ""


def _arguments(given: GivenOnPage, question: Question) -> dict[str, Any] | None:
    if given.option not in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS):
        return None
    if question.kind is QuestionKind.ELICITATION:
        values, wrong = typed_values(question.form, given.fields or {})
        if wrong:
            raise ConfigError("form-incomplete", "The form is not complete.", why=wrong, fix="Fill in what is missing.")
        return values
    if not can_be_changed(question):
        return None
    if given.blocks is not None:
        return _with_blocks(question, given.blocks)
    if given.texts is not None:
        return _with_texts(question, given.texts)
    if given.changed is None:
        return None
    changed = {**question.arguments, given.name: given.changed} if given.name else _read(given.changed)
    return None if changed == question.arguments else changed


def _with_blocks(question: Question, kept: list[bool]) -> dict[str, Any] | None:
    text = question.arguments.get(BLOCKS_ARGUMENT)
    spans = block_spans(text) if isinstance(text, str) else ()
    if len(spans) != len(kept) or not isinstance(text, str):
        raise ConfigError("blocks", "These are not the blocks of this edit.", fix="Load the page again.")
    if all(kept) or not any(kept):
        return None
    return {**question.arguments, BLOCKS_ARGUMENT: keep_blocks(text, spans, kept)}


def _with_texts(question: Question, texts: list[str]) -> dict[str, Any] | None:
    text = question.arguments.get(BLOCKS_ARGUMENT)
    changed = with_block_texts(text, texts) if isinstance(text, str) else None
    if changed is None:
        raise ConfigError(
            "block-texts",
            "The edit cannot be changed to this.",
            why="A line of it reads like the marks between blocks.",
            fix="Reject it, and say what should be done instead.",
        )
    return None if changed == text else {**question.arguments, BLOCKS_ARGUMENT: changed}


def _read(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ConfigError(
            "arguments-json", "These arguments cannot be read.", why=f"{error}.", fix="They are one object of JSON."
        ) from error


async def _answered(session: PageSession, question_id: str) -> str:
    """Say how a question was answered that is not open; the page hears of it a moment after the session says so."""
    event = asyncio.Event()
    with session.changed.notifying(event):
        try:
            async with asyncio.timeout(_HEARD_WITHIN):
                while question_id not in session.content.answered:
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return "This question is not open any more."
    return session.content.answered[question_id]
