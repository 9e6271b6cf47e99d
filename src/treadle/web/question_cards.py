"""The card of a question: what would happen, why it is asked, and the answers, in the words of every surface."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from treadle.door.open_session import Reach, block_spans
from treadle.present.answer_rows import (
    BLOCKS_ARGUMENT,
    Act,
    AnswerRow,
    EditFirst,
    answer_rows,
    can_be_changed,
    text_to_change,
)
from treadle.present.escape import exact
from treadle.present.forms import form_fields, offered_values
from treadle.present.grants import grants_of
from treadle.present.question_words import QuestionStyle, QuestionWords, asked_in_words
from treadle.present.trial_words import PRINTED
from treadle.protocol.events import Answer, Op, SetMode
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.web.templating import render

_LINKS = ("http://", "https://")
_LONGEST_CHANGED = 100_000
"""Characters of a call that can be changed on the page."""

_NO = "No"
_PLAIN = (Act.SHOW, Act.WORDS)
"""Rows that the card shows otherwise: the diff stands in it, and there is a field for words."""

_WORDS = {
    QuestionKind.SUMMARY: "What should change",
    QuestionKind.FOLLOWUP: "Something else",
}


OpRefusal = Callable[[Op], Reach | None]
"""Gives the effect of an op that whoever looks at a card may not have; None where they may ask for it."""

_ELSEWHERE = "the computer that Treadle runs on"


class WhyBlock(Struct, frozen=True):
    """Lines of what is said of a question: a sentence, or the lines that its command printed."""

    text: str
    printed: bool = False


class AskedPiece(Struct, frozen=True):
    """A piece of what is asked about; `warns` where it is the part that stands out."""

    text: str
    warns: bool = False


def question_html(session_id: str, question: Question, roots: Sequence[str], mode: Mode, *, refused: OpRefusal) -> str:
    """Give the card of a question of a session in a mode, with the answers that are not `refused`."""
    words = asked_in_words(question, roots)
    danger = words.style is QuestionStyle.DANGER
    preview = question.preview
    blocks = edit_blocks(question)
    every = [row for row in answer_rows(question, mode, blocks=len(blocks)) if row.act not in _PLAIN]
    rows = [row for row in every if not any(map(refused, _asked_for(row.act, question)))]
    acts = {row.act for row in rows}
    yes = not acts.isdisjoint((Act.ALLOW, Act.FOR_REAL))
    elicits = question.kind is QuestionKind.ELICITATION
    changes = None if refused(_answer(question, OptionKind.ALLOW_ONCE, changed=True)) else _changed_first(question)
    return render(
        "question.html",
        session_id=session_id,
        question=question,
        words=words,
        pieces=list(_pieces(words)) if question.kind is not QuestionKind.ELICITATION else [],
        danger=danger,
        why=why_blocks(question, words),
        diff=preview.text if preview is not None and preview.is_diff else "",
        rows=[(row.act.value, _label(row, question)) for row in rows],
        elicits=elicits,
        elsewhere=_given_elsewhere(question, refused, some=len(rows) < len(every)),
        yes=yes,
        sends=Act.ALLOW in acts,
        grants=grants_of(question) if Act.ALWAYS in acts else None,
        permits=question.kind is QuestionKind.PERMISSION,
        plain=question.kind in (QuestionKind.BUDGET, QuestionKind.ELICITATION),
        own_words=_WORDS.get(question.kind, "Answer"),
        fields=_fields(question) if elicits else [],
        blocks=[exact(block) for block in blocks] if Act.BLOCKS in acts else [],
        changes=changes,
        multiline=changes is not None and (changes.name != "command" or "\n" in changes.text),
        link=question.url if question.url.lower().startswith(_LINKS) else "",
    )


def _answer(
    question: Question, option: OptionKind, scope: AllowScope = AllowScope.SESSION, *, changed: bool = False
) -> Answer:
    arguments = {**question.arguments, "": ""} if changed else None
    return Answer(question_id=question.id, option=option, scope=scope, arguments=arguments)


def _asked_for(act: Act, question: Question) -> Iterator[Op]:
    """Give the ops that a row of the card asks for."""
    match act:
        case Act.ALLOW | Act.BLOCKS:
            yield _answer(question, question.yes)
        case Act.EDITS:
            yield SetMode(mode=Mode.EDITS)
            yield _answer(question, OptionKind.ALLOW_ONCE)
        case Act.SESSION:
            yield _answer(question, OptionKind.ALLOW_ALWAYS)
        case Act.ALWAYS | Act.SAVE:
            yield _answer(question, OptionKind.ALLOW_ALWAYS, AllowScope.USER)
        case Act.FOR_REAL:
            yield _answer(question, OptionKind.RUN_FOR_REAL)
        case Act.REJECT | Act.DROP | Act.DO_NOT_SAVE:
            yield _answer(question, OptionKind.REJECT_ONCE)
        case Act.OPTION | Act.WORDS | Act.TAKE:
            yield _answer(question, OptionKind.ANSWER)
        case Act.SHOW:
            return


def _given_elsewhere(question: Question, refused: OpRefusal, *, some: bool) -> str:
    """Say where the answers are given that the card leaves out: a yes, or `some` others."""
    effect = refused(_answer(question, question.yes))
    if effect is not None:
        return f"Answer this on {_ELSEWHERE}. A yes {effect}. From here you can say no."
    return f"Answers that apply beyond this question are given on {_ELSEWHERE}." if some else ""


def why_blocks(question: Question, words: QuestionWords) -> list[WhyBlock]:
    """Put together what is said of a question, each sentence by itself, what its command printed as one text."""
    if question.copy is None:
        return [WhyBlock(line) for line in words.why]
    found = groupby(words.why, key=lambda line: line.startswith(PRINTED))
    blocks: list[WhyBlock] = []
    for printed, lines in found:
        texts = list(lines)
        whole = "\n".join(line.removeprefix(PRINTED) for line in texts)
        blocks += [WhyBlock(whole, printed=True)] if printed else map(WhyBlock, texts)
    return blocks


def _label(row: AnswerRow, question: Question) -> str:
    if row.act is Act.REJECT and question.copy is None:
        return _NO  # the words go into the field below
    return row.label.removesuffix(", shift-tab)") + ")" * row.label.endswith(", shift-tab)")


def edit_blocks(question: Question) -> tuple[str, ...]:
    """Give the blocks of an edit where there is a choice among them."""
    text = question.arguments.get(BLOCKS_ARGUMENT)
    if not can_be_changed(question) or not isinstance(text, str):
        return ()
    spans = block_spans(text)
    return tuple(text[span] for span in spans) if len(spans) > 1 else ()


def _changed_first(question: Question) -> EditFirst | None:
    """Give what of a call can be changed first: its text, or without a name all its arguments as JSON."""
    if not can_be_changed(question) or not question.arguments:
        return None
    found = text_to_change(question)
    if found is None:
        whole = msgspec.json.format(msgspec.json.encode(question.arguments), indent=2).decode()
        found = EditFirst("", whole)
    return found if len(found.text) <= _LONGEST_CHANGED else None


def _pieces(words: QuestionWords) -> Iterator[AskedPiece]:
    """Cut what is asked about where a part of it stands out."""
    rest = words.text
    for part in words.parts:
        if part.effect.warns and part.text and part.text in rest:
            before, found, rest = rest.partition(part.text)
            yield AskedPiece(before)
            yield AskedPiece(found, warns=True)
    yield AskedPiece(rest)


def _fields(question: Question) -> list[dict[str, Any]]:
    """Give the fields of the form that an elicitation wants filled in."""
    required = question.form.get("required", ())
    fields = []
    for name, about in form_fields(question.form).items():
        value = question.arguments.get(name, about.get("default"))
        fields.append(
            {
                "name": name,
                "label": str(about.get("title") or name),
                "about": str(about.get("description", "")),
                "kind": str(about.get("type", "string")),
                "choices": [str(choice) for choice in offered_values(about)],
                "value": ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value),
                "on": value is True,
                "required": isinstance(required, list | tuple) and name in required,
            }
        )
    return fields
