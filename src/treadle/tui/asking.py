"""A question to the person: which keys answer it, and what they mean. A comment can go with a yes or a no."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question, QuestionKind

_KEYS = (
    ("y", OptionKind.ALLOW_ONCE, "yes"),
    ("a", OptionKind.ALLOW_ALWAYS, "yes, this session"),
    ("n", OptionKind.REJECT_ONCE, "no"),
)
_DEFAULT = "n"


class Stage(Enum):
    """What is awaited: one key, a comment, or the answer in words."""

    KEYS = "keys"
    COMMENT = "comment"
    WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Where the answering of a question stands."""

    question: Question
    stage: Stage
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ShowAll:
    """The person wants to see all of it."""


Pressed: TypeAlias = Asking | Answer | ShowAll


def ask(question: Question) -> Asking:
    """Begin to ask."""
    keys = question.kind is QuestionKind.PERMISSION
    return Asking(question=question, stage=Stage.KEYS if keys else Stage.WORDS)


def choices(question: Question) -> tuple[tuple[str, str], ...]:
    """List the keys for a permission and what they do."""
    offered = tuple((key, label) for key, option, label in _KEYS if option in question.options)
    return (*offered, ("c", "comment"), ("v", "view all"))


def press(asking: Asking, key: str) -> Pressed:
    """Take a key; one that means nothing changes nothing. Enter is the default, no."""
    pressed = _DEFAULT if key == "enter" else key.lower()
    if pressed == "v":
        return ShowAll()
    if pressed == "c":
        return replace(asking, stage=Stage.COMMENT)
    option = next((option for known, option, _ in _KEYS if known == pressed), None)
    if option is None or option not in asking.question.options:
        return asking
    return Answer(question_id=asking.question.id, option=option, text=asking.comment)


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
