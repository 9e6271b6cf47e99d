"""Questions of a session as permission requests and forms of the client, and what its answers mean."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.acp.call_shapes import in_fence, preview_content, text_content
from treadle.acp.shapes import ChosenOption, EditedText, FormAnswer, PermissionChoice, ToolCallShape, ToolContent
from treadle.door.open_session import arguments_for_text, is_text_of, writes_one_text
from treadle.present.answer_rows import Act, answer_rows, can_be_changed
from treadle.present.escape import printable
from treadle.present.forms import filled_in, form_lines
from treadle.present.grants import Grants, grants_of
from treadle.present.question_words import (
    QuestionStyle,
    QuestionWords,
    asked_in_words,
    is_edit,
    once,
    question_style,
)
from treadle.present.words import clip_text
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import FetchUrl, ReadPath, Risk, RunCommand, ToolKind, WritePath

_LONGEST_TITLE = 300
_OPTION = "answer:"
_WORDS = "words"
_USER = "allow_always:user"
ALL_EDITS = "allow_always:edits"
"""A yes that goes with a change to the mode edits."""

_YES = frozenset({OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS})
_NOTHING_LEFT = "The user left out every part of this edit."
_CHANGED = "The user changed this edit before allowing it, and"
_NOT_MADE = f"{_CHANGED} this call cannot write the result. Nothing was written."
_NO_LINE_END = f"{_CHANGED} took away the line end at the end of the file, which this call keeps. Nothing was written."
_OTHER_FILE = f"{_CHANGED} saw another text of the file than you. Nothing was written. Read the file again."
_NO = frozenset({"no", "cancel"})
_WITH_NO = (QuestionKind.PERMISSION, QuestionKind.BUDGET, QuestionKind.ELICITATION)

_ANSWERS: Mapping[str, tuple[OptionKind, AllowScope]] = MappingProxyType(
    {
        "allow_once": (OptionKind.ALLOW_ONCE, AllowScope.SESSION),
        "allow_always": (OptionKind.ALLOW_ALWAYS, AllowScope.SESSION),
        ALL_EDITS: (OptionKind.ALLOW_ONCE, AllowScope.SESSION),
        _USER: (OptionKind.ALLOW_ALWAYS, AllowScope.USER),
        "reject_once": (OptionKind.REJECT_ONCE, AllowScope.SESSION),
        "run_for_real": (OptionKind.RUN_FOR_REAL, AllowScope.SESSION),
    }
)


_ABOUT_COPY: Mapping[Act, tuple[str, str]] = MappingProxyType(
    {
        Act.ALLOW: ("allow_once", "allow_once"),
        Act.REJECT: ("reject_once", "reject_once"),
        Act.FOR_REAL: ("run_for_real", "allow_once"),
    }
)
"""Answers about what a command changed in its copy: the id of the option, and its kind."""


class Put(Struct, frozen=True, kw_only=True):
    """A question as it is put: the call that it is shown with, and what can be chosen."""

    call: ToolCallShape
    choices: tuple[PermissionChoice, ...]


def put_question(question: Question, roots: tuple[str, ...], mode: Mode) -> Put | None:
    """Put a question as a choice, in a session of this mode; None for one that only words answer."""
    choices = tuple(_choices(question, mode))
    if not choices:
        return None
    asked = asked_in_words(question, roots)
    call = ToolCallShape(
        tool_call_id=question.call_id or question.id if question.kind is QuestionKind.PERMISSION else question.id,
        title=clip_text(_title(question, asked), _LONGEST_TITLE),
        kind=_kind(question).value,
        status="pending",
        content=_content(question, asked, roots[0]),
        raw_input=question.arguments or None,
        meta={"treadle": _about(question)},
    )
    return Put(call=call, choices=choices)


def _about(question: Question) -> dict[str, Any]:
    """Say what clients that know this agent can do with a question, and which subagent it is of."""
    about: dict[str, Any] = {"editable": can_be_changed(question) and writes_one_text(question.arguments)}
    if question_style(question) is QuestionStyle.DANGER:
        about["dangerous"] = True
    return {**about, "child": question.child, "agent": question.agent} if question.child else about


def answer_of_choice(question: Question, chosen: ChosenOption) -> Answer | None:
    """Read what was chosen; None where the user wants to answer in words. What is not understood is a no.

    With a yes to an edit goes what the user made of it, and with either what they say of it.
    """
    answer = _plain_answer(question, chosen)
    details = None if chosen.meta is None else chosen.meta.treadle
    if answer is None or details is None or question.kind is not QuestionKind.PERMISSION:
        return answer
    answer = replace(answer, text=details.comment.strip())
    if details.edited is None or answer.option not in _YES:
        return answer
    made = _as_edited(question, details.edited)
    return _not_as_is(question, answer, made) if isinstance(made, str) else replace(answer, arguments=made)


def _as_edited(question: Question, wanted: EditedText) -> dict[str, Any] | str:
    """Give the arguments with which a call makes what the user made of it, or say why it cannot."""
    if wanted.old_text == wanted.new_text:
        return _NOTHING_LEFT
    if not can_be_changed(question):
        return _NOT_MADE
    if not all(is_text_of(wanted.old_text, one) for one in question.accesses if isinstance(one, WritePath)):
        return _OTHER_FILE
    arguments = arguments_for_text(question.arguments, wanted.old_text, wanted.new_text)
    if arguments is not None:
        return arguments
    return _NO_LINE_END if wanted.old_text.endswith("\n") and not wanted.new_text.endswith("\n") else _NOT_MADE


def _not_as_is(question: Question, answer: Answer, why: str) -> Answer:
    """Say no to an edit that was not wanted as it is."""
    text = " ".join(filter(None, (why, answer.text)))
    return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE, text=text)


def _plain_answer(question: Question, chosen: ChosenOption) -> Answer | None:
    option = chosen.option_id or ""
    if option == _WORDS:
        return None
    if option.startswith(_OPTION):
        number = option.removeprefix(_OPTION)
        if number.isdecimal() and int(number) < len(question.options):
            text = question.options[int(number)]
            return Answer(question_id=question.id, option=OptionKind.ANSWER, text=text)
        return None
    kind, scope = _ANSWERS.get(option, (OptionKind.REJECT_ONCE, AllowScope.SESSION))
    return (
        no_to(question) if kind not in question.options else Answer(question_id=question.id, option=kind, scope=scope)
    )


def no_to(question: Question) -> Answer | None:
    """Give the no to a question; None for one that has none."""
    if question.kind not in _WITH_NO:
        return None
    return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE)


def words_of(question: Question, text: str) -> Answer | str:
    """Answer a question in words; gives what is wrong or missing where they are to fill in a form."""
    if question.kind is not QuestionKind.ELICITATION:
        return Answer(question_id=question.id, option=OptionKind.ANSWER, text=text)
    if text.strip().lower() in _NO:
        return Answer(question_id=question.id, option=OptionKind.REJECT_ONCE)
    values, wrong = filled_in(question.form, text.strip(), question.arguments)
    return wrong or Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=values)


def filled(question: Question, entered: FormAnswer) -> Answer | None:
    """Read what was entered in a form; None where the user wants to answer in words, or not now."""
    if question.kind is QuestionKind.ELICITATION:
        if entered.action != "accept":
            return no_to(question)
        return Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=entered.content or {})
    words = (entered.content or {}).get("answer") if entered.action == "accept" else None
    if not isinstance(words, str) or not words.strip():
        return None
    return Answer(question_id=question.id, option=OptionKind.ANSWER, text=words.strip())


def question_message(question: Question) -> str:
    """Write a question as a message, with what can be answered and the text that it is about."""
    parts = [printable(question.text).strip()]
    if question.preview is not None and question.preview.text:
        parts.append(in_fence(printable(question.preview.text)))
    if question.kind is QuestionKind.ELICITATION:
        fields = list(form_lines(question.form, question.arguments))
        parts += [*fields, "Answer with name=value for each field, or with no." if len(fields) > 1 else ""]
    else:
        parts += [f"{number}. {printable(option)}" for number, option in enumerate(question.options, start=1)]
    return "\n\n".join(filter(None, parts))


def form_of(question: Question) -> dict[str, Any]:
    """Give the form in which a question is answered: its own, or one for words that names its options."""
    if question.form:
        return question.form
    with_options = f", or with {'some' if question.multiple else 'one'} of: " if question.options else ""
    about = f"Answer in your own words{with_options}{', '.join(question.options)}."
    answer = {"type": "string", "title": "Answer", "description": about, "minLength": 1}
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}


def _choices(question: Question, mode: Mode) -> "list[PermissionChoice]":
    match question.kind:
        case QuestionKind.PERMISSION:
            return _permission(question, mode)
        case QuestionKind.BUDGET:
            yes = f"Yes, {question.more}" if question.more else "Yes"
            return [_choice("allow_once", yes), _choice("reject_once", "No")]
        case QuestionKind.ELICITATION if question.form:
            return []
        case QuestionKind.ELICITATION if grants := grants_of(question):
            return [_choice("allow_once", "Yes, for this command"), *_lasting(grants), _choice("reject_once", "No")]
        case QuestionKind.ELICITATION:
            yes = "Yes, I have opened it" if question.url else "Yes"
            return [_choice("allow_once", yes), _choice("reject_once", "No")]
        case _ if question.options:
            rows = enumerate(question.options)
            options = [
                PermissionChoice(option_id=f"{_OPTION}{n}", name=printable(one), kind="allow_once") for n, one in rows
            ]
            return [*options, PermissionChoice(option_id=_WORDS, name="Answer in my own words", kind="reject_once")]
        case _:
            return []


def _permission(question: Question, mode: Mode) -> list[PermissionChoice]:
    no = _choice("reject_once", "No")
    if question.copy is not None:
        rows = (row for row in answer_rows(question, mode) if row.act in _ABOUT_COPY)
        return [
            PermissionChoice(option_id=_ABOUT_COPY[row.act][0], name=row.label, kind=_ABOUT_COPY[row.act][1])
            for row in rows
        ]
    if question_style(question) is QuestionStyle.DANGER:
        return [no, _choice("allow_once", once(question))]
    if question.denial is not None:
        return [_choice("allow_once", "Yes, once, with this right"), no]
    choices = [_choice("allow_once", "Yes")]
    if mode is Mode.ASK and is_edit(question) and question.decision and question.decision.risk is Risk.WRITE:
        name = "Yes, and all edits in this project this session (edits mode)"
        choices.append(PermissionChoice(option_id=ALL_EDITS, name=name, kind="allow_always"))
    elif grants := grants_of(question):
        choices += _lasting(grants)
    return [*choices, no]


def _lasting(grants: Grants) -> tuple[PermissionChoice, PermissionChoice]:
    return (
        _choice("allow_always", f"Yes, and don't ask again this session for: {grants.session}"),
        PermissionChoice(option_id=_USER, name=f"Always {grants.where}: {grants.always}", kind="allow_always"),
    )


def _choice(option: str, name: str) -> PermissionChoice:
    return PermissionChoice(option_id=option, name=name, kind=option)


def _title(question: Question, asked: QuestionWords) -> str:
    commands = [access.command for access in question.accesses if isinstance(access, RunCommand)]
    about = asked.text if commands else ""
    danger = "Dangerous: " if asked.style is QuestionStyle.DANGER else ""
    return f"{danger}{asked.title}{f' {about}' if about else ''}"


def _content(question: Question, asked: QuestionWords, root: str) -> tuple[ToolContent, ...]:
    preview = question.preview
    is_diff = preview is not None and preview.is_diff
    lines = [asked.whole_headline, asked.counted, *asked.why, asked.rights]
    lines += [f"{part.effect.verb} {part.text} {part.where}".strip() for part in asked.parts]
    if question.copy is not None:
        lines.append(in_fence(printable(question.copy.diff), "diff"))
    shown = [] if is_diff or not asked.text else [in_fence(asked.text)]
    text = "\n\n".join(filter(None, [f"**{asked.title}**", *shown, *lines]))
    return (text_content(text), *(preview_content(preview, root) if is_diff else ()))


def _kind(question: Question) -> ToolKind:
    """Say what kind of call a question is about, by what that touches."""
    for access in reversed(question.accesses):
        match access:
            case RunCommand():
                return ToolKind.EXECUTE
            case FetchUrl():
                return ToolKind.FETCH
            case WritePath(delete=True):
                return ToolKind.DELETE
            case WritePath():
                return ToolKind.EDIT
            case ReadPath():
                return ToolKind.READ
    return ToolKind.OTHER
