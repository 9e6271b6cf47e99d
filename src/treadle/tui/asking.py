"""A question to the person: which keys answer it, and what they mean. A comment can go with a yes or a no."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.session.blocks import block_spans, keep_blocks
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, OptionKind, Question, QuestionKind

_KEYS = (
    ("y", OptionKind.ALLOW_ONCE, AllowScope.SESSION, "yes"),
    ("a", OptionKind.ALLOW_ALWAYS, AllowScope.SESSION, "this session"),
    ("r", OptionKind.ALLOW_ALWAYS, AllowScope.USER, "always"),
    ("n", OptionKind.REJECT_ONCE, AllowScope.SESSION, "no"),
)
_DEFAULT = "n"

_MAIN_TEXTS = ("diff", "patch", "content", "command")
_BLOCKS = "diff"
"""The argument that may hold several SEARCH/REPLACE blocks."""


class Stage(Enum):
    """What is awaited: one key, a key for each block of an edit, a comment, or the answer in words."""

    KEYS = "keys"
    BLOCKS = "blocks"
    COMMENT = "comment"
    WORDS = "words"


class Asking(Struct, frozen=True, kw_only=True):
    """Where the answering of a question stands.

    `blocks` are the places of an edit's blocks where there is a choice among them, `kept` what was said of the first.
    """

    question: Question
    stage: Stage
    comment: str = ""
    blocks: tuple[slice, ...] = ()
    kept: tuple[bool, ...] = ()

    @property
    def block(self) -> str:
        """The text of the block that is asked about."""
        return _text(self.question, _BLOCKS)[self.blocks[len(self.kept)]]


class ShowAll(Struct, frozen=True):
    """The person wants to see all of it."""


class EditFirst(Struct, frozen=True):
    """The person wants to change the argument `name`, which is `text`, in an editor."""

    name: str
    text: str


Answered: TypeAlias = Asking | Answer | ShowAll | EditFirst


def ask(question: Question) -> Asking:
    """Begin to ask."""
    if question.kind not in (QuestionKind.PERMISSION, QuestionKind.BUDGET):
        return Asking(question=question, stage=Stage.WORDS)
    blocks = block_spans(_text(question, _BLOCKS))
    return Asking(question=question, stage=Stage.KEYS, blocks=blocks if len(blocks) > 1 else ())


def choices(asking: Asking) -> tuple[tuple[str, str], ...]:
    """List the keys for a permission and what they do."""
    if asking.stage is Stage.BLOCKS:
        return (("y", "take this block"), ("n", "leave it out"))
    question = asking.question
    offered = [(key, label) for key, option, _, label in _KEYS if option in question.options]
    if question.kind is QuestionKind.BUDGET:
        return tuple(offered)
    if main_text(question) is not None:
        offered.append(("e", "edit first"))
    if asking.blocks:
        offered.append(("h", "block by block"))
    return (*offered, ("c", "comment"), ("v", "view all"))


def press(asking: Asking, key: str) -> Answered:
    """Take a key; one that means nothing changes nothing. Enter is the default, no."""
    pressed = _DEFAULT if key == "enter" else key.lower()
    if asking.stage is Stage.BLOCKS:
        return _choose(asking, keep=pressed == "y") if pressed in ("y", "n") else asking
    match pressed:
        case "v":
            return ShowAll()
        case "c":
            return replace(asking, stage=Stage.COMMENT)
        case "e":
            return main_text(asking.question) or asking
        case "h" if asking.blocks:
            return replace(asking, stage=Stage.BLOCKS, kept=())
        case _:
            return _answer(asking, pressed)


def _answer(asking: Asking, pressed: str) -> Answered:
    answer = next(((option, scope) for known, option, scope, _ in _KEYS if known == pressed), None)
    if answer is None or answer[0] not in asking.question.options:
        return asking
    return Answer(question_id=asking.question.id, option=answer[0], scope=answer[1], text=asking.comment)


def _choose(asking: Asking, *, keep: bool) -> Asking | Answer:
    """Take a block or leave it out; after the last one that is the answer."""
    kept = (*asking.kept, keep)
    if len(kept) < len(asking.blocks):
        return replace(asking, kept=kept)
    if not any(kept):
        return Answer(question_id=asking.question.id, option=OptionKind.REJECT_ONCE, text=asking.comment)
    return amend(asking, _BLOCKS, keep_blocks(_text(asking.question, _BLOCKS), asking.blocks, kept))


def amend(asking: Asking, name: str, text: str) -> Answer:
    """Allow the call with another text as its argument `name`."""
    amended = {**asking.question.arguments, name: text}
    return Answer(
        question_id=asking.question.id,
        option=OptionKind.ALLOW_ONCE,
        text=asking.comment,
        arguments=None if amended == asking.question.arguments else amended,
    )


def back(asking: Asking) -> Asking | None:
    """Give what Esc goes back to; None where it has nothing to do with the question."""
    if asking.stage in (Stage.COMMENT, Stage.BLOCKS):
        return replace(asking, stage=Stage.KEYS, kept=())
    return None


def main_text(question: Question) -> EditFirst | None:
    """Find the text of a call that a person would want to change: a known one, or the only one there is."""
    texts = _texts(question.arguments)
    name = next((known for known in _MAIN_TEXTS if known in texts), next(iter(texts)) if len(texts) == 1 else None)
    return None if name is None else EditFirst(name, texts[name])


def _texts(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in arguments.items() if isinstance(value, str)}


def _text(question: Question, name: str) -> str:
    return _texts(question.arguments).get(name, "")


def say(asking: Asking, text: str) -> Asking | Answer:
    """Take a line of words: the comment, the answer, or the number of an offered answer."""
    words = text.strip()
    if asking.stage is Stage.COMMENT:
        return replace(asking, stage=Stage.KEYS, comment=words)
    if not words:
        return asking
    options = asking.question.options
    if words.isdecimal() and 1 <= int(words) <= len(options):
        words = options[int(words) - 1]
    return Answer(question_id=asking.question.id, option=OptionKind.ANSWER, text=words)
