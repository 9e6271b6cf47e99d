"""Calls, rights and questions of a subagent that works in a copy, as they would be in its parent's folder."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.app.subagents.writer_copies import WriterCopy
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Question
from treadle.protocol.tools import Access, SandboxDenial


class Renaming:
    """Names folders otherwise: `places` has the name and the one that takes its place, wherever it is named."""

    def __init__(self, places: Iterable[tuple[str, str]]) -> None:
        self._places = tuple(places)

    def call(self, arguments: dict[str, Any], accesses: Sequence[Access]) -> tuple[dict[str, Any], Sequence[Access]]:
        """Give a call with the other names."""
        return self._moved(arguments), tuple(msgspec.convert(self._in(one), Access) for one in accesses)

    def right(self, right: SandboxDenial) -> SandboxDenial:
        """Give a right with the other names."""
        return msgspec.convert(self._in(right), SandboxDenial)

    def question(self, question: Question) -> Question:
        """Give a question with the other names, in its decision and its rights, too."""
        return msgspec.convert(self._in(question), Question)

    def answer(self, answer: Answer) -> Answer:
        """Give the answer to such a question with the names as they are."""
        if answer.arguments is None:
            return answer
        back = Renaming((shown, name) for name, shown in self._places)
        return replace(answer, arguments=back._moved(answer.arguments))

    def _in(self, value: msgspec.Struct) -> Any:
        return self._moved(msgspec.to_builtins(value))

    def _moved(self, value: Any) -> Any:
        match value:
            case str():
                return self._named(value)
            case Mapping():
                return {name: self._moved(one) for name, one in value.items()}
            case list() | tuple():
                return [self._moved(one) for one in value]
            case _:
                return value

    def _named(self, text: str) -> str:
        for name, other in self._places:
            text = text.replace(name, other)
        return text


IN_SAME_FOLDER = Renaming(())


def as_in_workspace(copy: WriterCopy) -> Renaming:
    """Give what names the workspace wherever a copy of it is named."""
    return Renaming((str(target), str(source)) for source, target in copy.roots)
