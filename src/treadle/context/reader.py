"""The conversation as the log tells it: read off the events alone, with no word that is not in them."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from treadle.context.transcript import Transcript
from treadle.protocol.events import (
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextReady,
    EditQueued,
    Event,
    OfferChanged,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Shortened,
)
from treadle.protocol.messages import ContentBlock, ResultContent, Text, ToolResult
from treadle.protocol.sealed import Passage, PromptContent, ResultMade, SealedResult
from treadle.protocol.tools import CallResult


class TranscriptReader:
    """Follows a log, event by event; `transcript` is the conversation so far, `offer` what goes with it."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.offer = OfferChanged(step=0, system=())
        self._prompts: dict[str, Prompt | EditQueued] = {}
        self._names: dict[str, str] = {}
        self._results: dict[str, CallResult] = {}

    def take(self, event: Event) -> None:  # noqa: C901 - one line for each event
        """Read one event."""
        match event.data:
            case CallJudged() | CallStarted():  # first what comes most often
                pass
            case CallProposed(call=call):
                self._names[call.id] = call.name
            case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
                self._results[call_id] = result
            case ContextReady() as data:
                self._seal(data, event.seq)
            case ReplyFinished(message=message, usage=usage):
                self.transcript.add_assistant(message, usage.context_tokens, seq=event.seq)
            case Prompt(id=prompt_id) as prompt:
                self._prompts[prompt_id] = prompt
            case EditQueued(prompt_id=prompt_id) as prompt if prompt.content:
                self._prompts[prompt_id] = prompt
            case OfferChanged() as offer:
                self.offer = offer
            case ReplyFailed(partial=partial):
                self._forget_calls()
                if partial is not None:
                    self.transcript.add_assistant(partial, seq=event.seq)
            case Compacted() as data:
                self.transcript.drop(data.through, data.summary)
                self._shorten(data.shortened)
            case _:
                pass

    def pending(self, call_ids: Iterable[str]) -> Mapping[str, tuple[ResultContent, ...]]:
        """Give the contents of results that no message holds yet."""
        return {call_id: self._results[call_id].content for call_id in call_ids if call_id in self._results}

    def blocks(
        self, results: Iterable[SealedResult], content: Iterable[Passage | PromptContent]
    ) -> tuple[ContentBlock, ...]:
        """Give the blocks of a user message that consists of these."""
        return (*map(self._result, results), *self._of_content(content))

    def _seal(self, data: ContextReady, seq: int) -> None:
        delivered = [one.prompt_id for one in data.content if isinstance(one, PromptContent)]
        prompts = [self._prompts[one].content for one in delivered if one in self._prompts]
        self.transcript.add_user(self.blocks(data.results, data.content), prompts, seq=seq)
        for prompt_id in delivered:
            self._prompts.pop(prompt_id, None)
        self._forget_calls()

    def _forget_calls(self) -> None:
        self._names.clear()
        self._results.clear()

    def _result(self, sealed: SealedResult) -> ToolResult:
        result = self._results.get(sealed.call_id)
        content: tuple[ResultContent, ...] = () if result is None else result.content
        return ToolResult(
            call_id=sealed.call_id,
            name=self._names.get(sealed.call_id, ""),
            content=content or (Text(text=sealed.text),),
            is_error=result is None or result.is_error,
            wire_id=self.transcript.wire_id(sealed.call_id),
        )

    def _of_content(self, content: Iterable[Passage | PromptContent]) -> Iterator[ContentBlock]:
        for one in content:
            match one:
                case Passage(text=text):
                    yield Text(text=text)
                case PromptContent(prompt_id=prompt_id):
                    yield from self._of_prompt(prompt_id)

    def _of_prompt(self, prompt_id: str) -> Iterator[ContentBlock]:
        prompt = self._prompts.get(prompt_id)
        if prompt is not None:
            yield from prompt.content
            for enclosure in prompt.enclosed:
                yield from enclosure.content

    def _shorten(self, shortened: Iterable[Shortened]) -> None:
        contents = {one.call_id: one.content for one in shortened}
        self.transcript.replace_results(contents)
        for call_id, content in contents.items():
            if call_id in self._results:
                self._results[call_id] = replace(self._results[call_id], content=content)
