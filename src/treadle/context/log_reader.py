"""The conversation as the log tells it: read off the events alone, with no word that is not in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from treadle.context.provenance import Entry, Provenance, name_of_block
from treadle.context.sizes import is_believable
from treadle.context.transcript import Transcript
from treadle.protocol.events import (
    ENGINE,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextReady,
    EditQueued,
    Event,
    EventData,
    OfferChanged,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    ReplyPart,
    SessionStarted,
    SetMode,
    SetModel,
    Shortened,
)
from treadle.protocol.messages import (
    ContentBlock,
    Message,
    RedactedThinking,
    ResultContent,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from treadle.protocol.models import ErrorKind, ModelChoice, ModelError, RefusedPart
from treadle.protocol.sealed import (
    ModelReplaced,
    Passage,
    PassageKind,
    PromptContent,
    ResultMade,
    SealedResult,
    system_text,
)
from treadle.protocol.tools import CallResult, Flow, Outcome, ToolKind
from treadle.protocol.usage import Usage

_LEAST_CACHED = 1_024
"""Tokens; providers that keep the beginnings of requests by themselves keep no shorter ones."""

_PROMPT, _REPLY, _THINKING, _RESULT = map(Provenance, ("prompt", "reply", "thinking", "result"))
_INHERITED = Provenance("inherited")
_PASSAGES = {kind: Provenance(kind) for kind in PassageKind}


LEFT = ModelError(kind=ErrorKind.CANCELLED, message="Treadle ended before the reply did.")
"""Why a reply is not whole whose program ended."""


class BegunReply:
    """Follows the text of a reply that has not ended; `step` and `attempt` are those of the newest part."""

    def __init__(self) -> None:
        self.step = self.attempt = 0
        self._parts: list[str] = []

    def take(self, data: EventData) -> None:
        """Read one event."""
        match data:
            case ReplyPart(step=step, attempt=attempt, text=text):
                if (step, attempt) != (self.step, self.attempt):
                    self.step, self.attempt = step, attempt
                    self._parts.clear()
                self._parts.append(text)
            case ReplyFinished() | ReplyFailed():
                self._parts.clear()
            case _:
                pass

    def message(self) -> Message | None:
        """Give what there is of it; None where there is nothing."""
        text = "".join(self._parts)
        return Message(role=Role.ASSISTANT, content=(Text(text=text),)) if text.strip() else None


def with_cut_reply(events: Iterable[Event]) -> Iterator[Event]:
    """Give the events of a session that no program has open, and behind them the end of a reply that has none."""
    begun, last = BegunReply(), None
    for last in events:
        begun.take(last.data)
        yield last
    kept = begun.message()
    if last is not None and kept is not None:
        cut = ReplyFailed(step=begun.step, attempt=begun.attempt, error=LEFT, partial=kept, left=True)
        yield Event(seq=last.seq + 1, at=last.at, source=ENGINE, data=cut)


class TranscriptReader:
    """Follows a log, event by event; `transcript` is the conversation so far, `offer` what goes with it.

    `replied_at` is when the last reply came (milliseconds since 1970, UTC); 0 where there was none. `cached` is how
    many tokens of the conversation the provider is likely to have in its cache. `takes_images` is False once the
    provider said that the model takes none. `begun` is the reply that has not ended.
    """

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.offer = OfferChanged(step=0, system=())
        self.replied_at = 0
        self.cached = 0
        self.takes_images = True
        self.begun = BegunReply()
        self._beside = 0
        self._replied = False
        self._prompts: dict[str, Prompt] = {}
        self._calls: dict[str, CallProposed] = {}
        self._results: dict[str, CallResult] = {}

    def largest(self, offer: OfferChanged, new: Sequence[ContentBlock]) -> Sequence[tuple[int, str]]:
        """Give the largest parts of what a request has at least, with about how many tokens each takes.

        That is the offer, what always stays of the conversation, and what is `new` behind it.
        """
        system = offer_size(replace(offer, tools=()))
        beside = ((system, "the system prompt"), (offer_size(offer) - system, "the tools"))
        return self.transcript.largest(
            *beside, *((self.transcript.size_of_block(one), name_of_block(one)) for one in new)
        )

    def take(self, event: Event) -> None:  # noqa: C901, PLR0912 - one line for each event
        """Read one event."""
        match event.data:
            case CallJudged() | CallStarted():  # first what comes most often
                pass
            case ReplyPart():
                self.begun.take(event.data)
            case CallProposed() as proposed:
                self._calls[proposed.call.id] = proposed
            case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
                self._results[call_id] = result
            case ContextReady() as data:
                self._seal(data, event.seq)
            case SessionStarted(inherits=inherited, limits=limits):
                self.transcript.sizes_images = limits.sizes_images is True
                self._inherit(inherited if isinstance(inherited, tuple) else (), event.seq)
            case ReplyFinished(message=message, usage=usage, doubted=doubted):
                sources = tuple(self._source_of(block) for block in message.content)
                self.begun.take(event.data)
                self.replied_at = event.at
                self.cached = self._cached_after(usage)
                self.transcript.add_assistant(
                    message, 0 if doubted else usage.context_tokens, seq=event.seq, sources=sources, beside=self._beside
                )
            case Prompt(id=prompt_id) as prompt:
                self._prompts[prompt_id] = prompt
            case EditQueued(prompt_id=prompt_id) as edit if edit.content and prompt_id in self._prompts:
                self._prompts[prompt_id] = edit.edited(self._prompts[prompt_id])
            case OfferChanged() as offer:
                self.offer, self._beside = offer, offer_size(offer)
            case ReplyFailed(partial=partial, error=error, left=left):
                self.begun.take(event.data)
                self._forget_calls()
                self._leave_out(error.refused)
                if partial is not None and not left:
                    sources = tuple(_REPLY for _ in partial.content)
                    self.transcript.add_assistant(partial, seq=event.seq, sources=sources)
            case SetModel() | SetMode(choice=ModelChoice()) | ModelReplaced():
                self.takes_images = True
            case Compacted() as data:
                self.cached = 0
                self.transcript.drop(data.through, data.summary)
                self._shorten(data.shortened)
            case _:
                pass

    def _inherit(self, messages: Iterable[Message], seq: int) -> None:
        """Begin with the messages of another session; where they came from there is not said here."""
        for message in messages:
            if message.role is Role.USER:
                self.transcript.add_user(message.content, seq=seq, sources=tuple(_INHERITED for _ in message.content))
            else:
                self.transcript.add_assistant(message, seq=seq, sources=tuple(_INHERITED for _ in message.content))

    def _cached_after(self, usage: Usage) -> int:
        """Say what the provider is likely to read from its cache next: all of this request, if it keeps any at all."""
        first, self._replied = not self._replied, True
        kept = bool(usage.cache_read_tokens or usage.cache_write_tokens)
        return usage.request_tokens if kept or (first and usage.request_tokens >= _LEAST_CACHED) else 0

    def _leave_out(self, part: RefusedPart | None) -> None:
        """Leave out what the provider refused: what is there of it, or every image as long as the model stays."""
        if part is RefusedPart.EVERY_IMAGE:
            self.takes_images = False
        elif part is not None:
            self.transcript.leave_out(part)

    def believes(self, tokens: int) -> bool:
        """Whether a provider's count of a request with its reply can be right; no count is no wrong one."""
        return not tokens or is_believable(tokens, self.transcript.bytes, self._beside)

    def pending(self, call_ids: Iterable[str]) -> Mapping[str, tuple[ResultContent, ...]]:
        """Give the contents of results that no message holds yet."""
        return {call_id: self._results[call_id].content for call_id in call_ids if call_id in self._results}

    def waiting(self, results: Iterable[SealedResult]) -> tuple[Entry, ...]:
        """Give results that no message holds yet as messages, with where they come from."""
        parts = [*self._parts(results, ())]
        return tuple(Entry(Message(role=Role.USER, content=(block,)), 0, (), (source,)) for block, source in parts)

    def blocks(
        self, results: Iterable[SealedResult], content: Iterable[Passage | PromptContent]
    ) -> tuple[ContentBlock, ...]:
        """Give the blocks of a user message that consists of these."""
        return tuple(block for block, _ in self._parts(results, content))

    def _parts(
        self, results: Iterable[SealedResult], content: Iterable[Passage | PromptContent]
    ) -> Iterator[tuple[ContentBlock, Provenance]]:
        for sealed in results:
            yield self._result(sealed), self._source_of_result(sealed.call_id)
        for one in content:
            match one:
                case Passage(kind=kind, text=text, origin=origin):
                    yield Text(text=text), _PASSAGES[kind] if not origin else Provenance(kind, origin)
                case PromptContent(prompt_id=prompt_id):
                    yield from self._of_prompt(prompt_id)

    def _of_prompt(self, prompt_id: str) -> Iterator[tuple[ContentBlock, Provenance]]:
        prompt = self._prompts.get(prompt_id)
        if prompt is None:
            return
        for block in prompt.content:
            yield block, _PROMPT
        for enclosure in prompt.enclosed:
            for block in enclosure.content:
                yield block, Provenance(enclosure.kind, enclosure.origin)

    def _source_of_result(self, call_id: str) -> Provenance:
        """Say what a result is: what was read, what the user answered or did not allow, or what came of a call."""
        proposed, result = self._calls.get(call_id), self._results.get(call_id)
        if proposed is None or result is None:
            return _RESULT
        call, traits = proposed.call, proposed.traits
        if result.outcome is Outcome.REJECTED:
            return Provenance("rejection", call=call)
        if traits.flow is Flow.ASK and result.outcome is Outcome.OK:
            return Provenance("answer", call=call)
        if traits.kind is ToolKind.READ and traits.flow is Flow.RUN and result.outcome is Outcome.OK:
            return Provenance("read", call=call)
        return Provenance("result", call=call)

    def _source_of(self, block: ContentBlock) -> Provenance:
        match block:
            case ToolUse(name=name, id=call_id):
                proposed = self._calls.get(call_id)
                return Provenance("call", name, None if proposed is None else proposed.call)
            case Thinking() | RedactedThinking():
                return _THINKING
            case _:
                return _REPLY

    def _seal(self, data: ContextReady, seq: int) -> None:
        delivered = [one.prompt_id for one in data.content if isinstance(one, PromptContent)]
        prompts = [self._prompts[one].content for one in delivered if one in self._prompts]
        parts = tuple(self._parts(data.results, data.content))
        self.transcript.add_user(
            tuple(block for block, _ in parts), prompts, seq=seq, sources=tuple(source for _, source in parts)
        )
        for prompt_id in delivered:
            self._prompts.pop(prompt_id, None)
        self._forget_calls()

    def _forget_calls(self) -> None:
        self._calls.clear()
        self._results.clear()

    def _result(self, sealed: SealedResult) -> ToolResult:
        result = self._results.get(sealed.call_id)
        content: tuple[ResultContent, ...] = () if result is None else result.content
        return ToolResult(
            call_id=sealed.call_id,
            name=self._calls[sealed.call_id].call.name if sealed.call_id in self._calls else "",
            content=content or (Text(text=sealed.text),),
            is_error=result is None or result.is_error,
            wire_id=self.transcript.wire_id(sealed.call_id),
        )

    def _shorten(self, shortened: Iterable[Shortened]) -> None:
        contents = {one.call_id: one.content for one in shortened}
        self.transcript.replace_results(contents)
        for call_id, content in contents.items():
            if call_id in self._results:
                self._results[call_id] = replace(self._results[call_id], content=content)


def offer_size(offer: OfferChanged) -> int:
    """Count the bytes of the system prompt, and of the tools where they are no part of it."""
    return len(system_text(offer.system).encode()) + (len(msgspec.json.encode(offer.tools)) if offer.tools else 0)
