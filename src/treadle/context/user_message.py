"""What Treadle puts around a user's words in a message: notes, the frame of the task, the environment."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.protocol.sealed import Passage, PassageKind, PromptContent


def user_message(
    *, prompts: Sequence[str], notes: Sequence[Passage], environment: str, first: bool
) -> tuple[Passage | PromptContent, ...]:
    """Put together what follows on the results: notes, prompts by their ids (the `first` is the task), environment."""
    return tuple(_parts(prompts, notes, environment, first=first))


def _parts(
    prompts: Sequence[str], notes: Sequence[Passage], environment: str, *, first: bool
) -> Iterator[Passage | PromptContent]:
    for note in notes:
        yield _framed(note) if note.kind is PassageKind.NOTE else note
    for prompt_id in prompts:
        if first:
            yield Passage(kind=PassageKind.TASK, text="<task>")
        yield PromptContent(prompt_id=prompt_id)
        if first:
            yield Passage(kind=PassageKind.TASK, text="</task>")
    if environment:
        yield Passage(kind=PassageKind.ENVIRONMENT, text=f"<environment>\n{environment}\n</environment>")


def _framed(note: Passage) -> Passage:
    return replace(note, text=f"<note>\n{note.text}\n</note>")
