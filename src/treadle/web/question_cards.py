"""The card of a question: what would happen, why it is asked, and the answers, in the words of every surface."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from treadle.app.presentation.answer_rows import (
    BLOCKS_ARGUMENT,
    Act,
    AnswerRow,
    EditFirst,
    answer_rows,
    can_be_changed,
    text_to_change,
)
from treadle.app.presentation.escape import exact
from treadle.app.presentation.forms import form_fields, offered_values
from treadle.app.presentation.grants import grants_of
from treadle.app.presentation.questions import QuestionStyle, QuestionWords, asked_in_words
from treadle.app.session.blocks import block_spans
from treadle.protocol.permissions import Mode, Question, QuestionKind
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


class AskedPiece(Struct, frozen=True):
    """A piece of what is asked about; `warns` where it is the part that stands out."""

    text: str
    warns: bool = False


def question_html(session_id: str, question: Question, roots: Sequence[str], mode: Mode) -> str:
    """Give the card of a question of a session in a mode."""
    words = asked_in_words(question, roots)
    danger = words.style is QuestionStyle.DANGER
    preview = question.preview
    blocks = edit_blocks(question)
    rows = [row for row in answer_rows(question, mode, blocks=len(blocks)) if row.act not in _PLAIN]
    elicits = question.kind is QuestionKind.ELICITATION
    changes = _changed_first(question)
    return render(
        "question.html",
        session_id=session_id,
        question=question,
        words=words,
        pieces=list(_pieces(words)) if question.kind is not QuestionKind.ELICITATION else [],
        danger=danger,
        diff=preview.text if preview is not None and preview.is_diff else "",
        rows=[(row.act.value, _label(row, question)) for row in rows],
        elicits=elicits,
        grants=grants_of(question),
        permits=question.kind is QuestionKind.PERMISSION,
        plain=question.kind in (QuestionKind.BUDGET, QuestionKind.ELICITATION),
        own_words=_WORDS.get(question.kind, "Answer"),
        fields=_fields(question) if elicits else [],
        blocks=[exact(block) for block in blocks],
        changes=changes,
        multiline=changes is not None and (changes.name != "command" or "\n" in changes.text),
        link=question.url if question.url.lower().startswith(_LINKS) else "",
    )


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
        if part.meaning.warns and part.text and part.text in rest:
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
