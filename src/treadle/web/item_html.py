"""Items of a session's page as HTML; each version is made once, however many browsers look."""

from collections.abc import Sequence
from typing import Any

from treadle.app.presentation.escape import output_of_command
from treadle.app.presentation.grants import grants_of
from treadle.app.presentation.questions import QuestionStyle, asked_in_words
from treadle.app.presentation.words import changed_lines, describe_call, ended, note_of, plain, what_came_of
from treadle.protocol.notifications import CallStatus, TurnStop
from treadle.protocol.permissions import OptionKind, Question
from treadle.protocol.tools import ToolKind
from treadle.web.items import CallCard, Entry, Note, Problem, Prose, Said, Thought, TurnEnd, Writing
from treadle.web.templating import render

_SHOWN_RESULT = 20_000


def entry_html(entry: Entry) -> str:
    """Give an entry as HTML; one that is gone is an empty element that keeps its place."""
    if not entry.html:
        entry.html = render("item.html", position=entry.position, **_parts(entry))
    return entry.html


def _parts(entry: Entry) -> dict[str, Any]:
    item = entry.item
    match item:
        case None:
            return {"kind": "gone"}
        case Said():
            return {"kind": "said", "item": item}
        case Prose():
            return {"kind": "prose", "item": item}
        case Thought():
            return {"kind": "thought", "item": item}
        case Writing():
            return {"kind": "writing", "item": item}
        case Note():
            return {"kind": "note", "item": item}
        case Problem():
            return {"kind": "problem", "item": item}
        case TurnEnd(outcome=outcome):
            good = outcome.stop is TurnStop.END_TURN
            return {"kind": "end", "item": item, "words": ended(outcome.stop), "good": good, "sum": _sum(item)}
        case CallCard():
            return _card(item)


def _sum(end: TurnEnd) -> str:
    return changed_lines(end.files)


def _card(card: CallCard) -> dict[str, Any]:
    changed, result = card.changed, card.changed.result
    preview = changed.preview
    done = changed.status is CallStatus.FINISHED
    asks = changed.status is CallStatus.ASKING  # the question below shows it
    output = output_of_command(card.output)
    if not output and result is not None and changed.kind is not ToolKind.EDIT:
        output = output_of_command(plain(result.content)[:_SHOWN_RESULT])
    return {
        "kind": "call",
        "item": card,
        "name": describe_call(changed),
        "state": what_came_of(changed, result) if result is not None else changed.status.value,
        "outcome": result.outcome.value if result is not None else "open",
        "note": note_of(changed.kind, result) if result is not None else "",
        "diff": preview.text if preview is not None and preview.is_diff and not asks else "",
        "output": output,
        "done": done,
        "decision": changed.decision,
    }


def question_html(session_id: str, question: Question, roots: Sequence[str]) -> str:
    """Give the card of a question, with a button for each answer that it offers."""
    words = asked_in_words(question, roots)
    preview = question.preview
    return render(
        "question.html",
        session_id=session_id,
        question=question,
        words=words,
        danger=words.style is QuestionStyle.DANGER,
        diff=preview.text if preview is not None and preview.is_diff else "",
        grants=grants_of(question),
        permits=OptionKind.ALLOW_ONCE in question.options,
        for_real=OptionKind.RUN_FOR_REAL in question.options,
        fields=_fields(question),
    )


def _fields(question: Question) -> list[dict[str, Any]]:
    """Give the fields of the form that an elicitation wants filled in."""
    required = question.form.get("required", [])
    return [
        {
            "name": name,
            "label": schema.get("title", name),
            "about": schema.get("description", ""),
            "type": schema.get("type", "string"),
            "choices": [str(choice) for choice in schema.get("enum", [])],
            "value": question.arguments.get(name, schema.get("default")),
            "required": name in required,
        }
        for name, schema in question.form.get("properties", {}).items()
        if isinstance(schema, dict)
    ]
