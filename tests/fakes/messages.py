"""User messages as the log seals them, put together without a log."""

from collections.abc import Iterable, Sequence

from treadle.context.log_reader import TranscriptReader
from treadle.context.transcript import Transcript
from treadle.context.user_message import user_message
from treadle.protocol.events import Event
from treadle.protocol.messages import ContentBlock, Text, ToolResult, UserContent
from treadle.protocol.sealed import Passage, PassageKind


def add_user(
    transcript: Transcript,
    *,
    results: Sequence[ToolResult] = (),
    prompts: Sequence[Sequence[UserContent]] = (),
    notes: Sequence[str] = (),
    environment: str = "",
) -> None:
    """Add a user message of these parts, as the loop puts them together."""
    contents = {str(number): content for number, content in enumerate(prompts)}
    passages = [Passage(kind=PassageKind.NOTE, text=note) for note in notes]
    parts = user_message(prompts=list(contents), notes=passages, environment=environment, first=transcript.is_empty)
    blocks: list[ContentBlock] = [*results]
    for part in parts:
        blocks += [Text(text=part.text)] if isinstance(part, Passage) else contents[part.prompt_id]
    transcript.add_user(tuple(blocks), prompts)


def read_transcript(events: Iterable[Event]) -> Transcript:
    """Read the conversation off a whole log."""
    reader = TranscriptReader()
    for event in events:
        reader.take(event)
    return reader.transcript
