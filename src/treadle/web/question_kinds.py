"""Of which kind a question is: the group of the inbox that it stands in, its sign, and the word for its effect."""

from collections.abc import Mapping

from msgspec import Struct

from treadle.present.question_words import QuestionStyle, QuestionWords, is_edit
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import FetchUrl, RunCommand


class AskedKind(Struct, frozen=True):
    """What questions of a kind are called together, and their sign; `effect` says what a command does."""

    group: str
    sign: str = "alert"
    effect: str = ""


DANGER = AskedKind("Danger", "flag")
ENDED = AskedKind("Program ended")
EDITS, _OUTSIDE = AskedKind("Edits", "pencil"), AskedKind("Outside the project")
_MODEL, _BUDGET, _OTHERS = AskedKind("Asked by the model", "comment"), AskedKind("Budget"), AskedKind("Others")
_FETCHES, _COMMANDS = AskedKind("Network", "globe"), AskedKind("Commands", "term")
_BY_EFFECT: Mapping[str, AskedKind] = {
    "deletes": AskedKind("Commands that delete files", "term", "deletes files"),
    "network": AskedKind("Network", "term", "uses the network"),
    "git": AskedKind("Commands of git", "term", "uses git"),
    "writes": AskedKind("Commands that write files", "term", "writes files"),
    "runs": AskedKind("Commands that run project code", "term", "runs project code"),
    "reads": AskedKind("Commands that read files", "term", "reads files"),
}
"""Kinds of commands by the verb of their effect, the one that reaches furthest first."""

KINDS = (DANGER, *_BY_EFFECT.values(), _COMMANDS, _FETCHES, EDITS, _OUTSIDE, _MODEL, _BUDGET, _OTHERS, ENDED)
INBOX_GROUPS = tuple(dict.fromkeys(kind.group for kind in KINDS))
"""The groups in their order."""


def asked_kind(question: Question, words: QuestionWords) -> AskedKind:
    """Say of which kind a question is."""
    if words.style is QuestionStyle.DANGER:
        return DANGER
    match question.kind:
        case QuestionKind.FOLLOWUP | QuestionKind.GUIDANCE | QuestionKind.SUMMARY:
            return _MODEL
        case QuestionKind.BUDGET:
            return _BUDGET
        case QuestionKind.ELICITATION:
            return _OTHERS
        case QuestionKind.PERMISSION:
            pass
    if any(isinstance(access, RunCommand) for access in question.accesses):
        verbs = {effect.verb for effect in words.effects}
        return next((kind for verb, kind in _BY_EFFECT.items() if verb in verbs), _COMMANDS)
    if any(isinstance(access, FetchUrl) for access in question.accesses):
        return _FETCHES
    if "outside this project" in words.title:
        return _OUTSIDE
    return EDITS if is_edit(question) else _OTHERS
