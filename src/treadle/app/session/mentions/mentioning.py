"""What a message mentions is read and goes along with it: through the policy, redacted, and bounded."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.app.session.mentions.enclosing import NotEnclosedError, enclose, head_and_tail, read_mentioned
from treadle.app.session.mentions.mention_text import Named, find_named
from treadle.engine.core.calls import rights_of
from treadle.engine.core.machine_effects import RunTool
from treadle.engine.ports import Ports
from treadle.engine.runtime.tool_call import LiveOutput, judge_call, redacted, run_call
from treadle.present.words import plain
from treadle.protocol.errors import ToolError
from treadle.protocol.events import CallFinished
from treadle.protocol.messages import Enclosure, EnclosureKind, Text, UserContent
from treadle.protocol.permissions import Decision, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import Access, CallResult, Outcome, ToolCall, ToolSpec
from treadle.tools.declarations import LIST_FILES, READ_FILE, WEB_FETCH
from treadle.tools.images import is_image
from treadle.workspace.files.judged import judge_path
from treadle.workspace.files.text import size_of, visible
from treadle.workspace.workspace import Workspace

_MOST_OF_ONE = 50_000
_MOST = 150_000
"""Bytes of what goes along with one message."""

_IMAGE = 15_000
"""What an image takes of that."""

_MOST_NAMED = 50
_MOST_SAID = 10
_SECONDS = 20.0
_SHOWN = 120

Special = Callable[[int], Awaitable[str]]
"""Gives a text of at most so many bytes; raises `NotEnclosedError` with the reason where there is none."""


class Enclosed(Struct, frozen=True, kw_only=True):
    """What goes along with a message, and what a person should know of the rest."""

    enclosures: tuple[Enclosure, ...] = ()
    notices: tuple[str, ...] = ()


class JudgedCalls(Struct, frozen=True, kw_only=True):
    """How a call is judged and done that no model made: with the `ports` of the session, as it is `standing` then."""

    ports: Ports
    standing: Callable[[], Standing]


class MentionSources(JudgedCalls, frozen=True, kw_only=True):
    """Where what is mentioned comes from: as with a call of the model, by the tools and the policy of the session.

    `words` are mentions that are no paths. `commit` shows one by its hash, nothing where there is none of it, and
    `rule` gives the origin and the text of a rule by its name.
    """

    workspace: Workspace
    sees_images: Callable[[], bool]
    words: Mapping[str, tuple[EnclosureKind, Special]]
    commit: Callable[[str, int], Awaitable[str]]
    rule: Callable[[str], tuple[str, str] | None] = lambda _: None


async def resolve_mentions(text: str, sources: MentionSources) -> Enclosed:
    """Read what a text mentions. What is not allowed without asking does not go along, and a notice says which and why.

    A word that names nothing, such as a decorator, is no mention. Nothing of it raises, and nothing takes for ever.
    """
    resolver = _Resolver(sources)
    for named in find_named(text):
        await resolver.take(named)
    return Enclosed(enclosures=tuple(resolver.enclosures), notices=tuple(resolver.said()))


class _Resolver:
    """Takes one mention after the other."""

    def __init__(self, sources: MentionSources) -> None:
        self._sources = sources
        self._room = min(_MOST, 3 * self._most_of_one)
        self._seen: set[tuple[str, str]] = set()
        self._left_out: list[str] = []
        self._notices: list[str] = []
        self.enclosures: list[Enclosure] = []

    @property
    def _most_of_one(self) -> int:
        return min(_MOST_OF_ONE, self._sources.workspace.conversation.room())

    def said(self) -> list[str]:
        """Give the notices: the first ones, and how many others there are."""
        said = self._notices[:_MOST_SAID]
        if self._left_out:
            names = ", ".join(self._left_out[:_MOST_SAID])
            more = f" and {len(self._left_out) - _MOST_SAID} more" if len(self._left_out) > _MOST_SAID else ""
            said.append(f"Not enclosed, since the message is full: {names}{more}. The model can still read them.")
        if len(self._notices) > _MOST_SAID:
            said.append(f"{len(self._notices) - _MOST_SAID} more mentions were not enclosed.")
        return said

    async def take(self, named: Named) -> None:
        """Enclose what is named, or say why not; nothing for what is no mention."""
        key = (named.target, named.lines)
        if key in self._seen:
            return
        self._seen.add(key)
        shown = _short(f"@{named.target}{named.lines}")
        room = min(self._most_of_one, self._room)
        try:
            reading = self._reading(named, room)
            if reading is None:
                return
            if room <= 0 or len(self.enclosures) >= _MOST_NAMED:
                self._left_out.append(shown)
                return
            async with asyncio.timeout(_SECONDS):
                enclosure = await reading()
        except TimeoutError:
            self._notices.append(f"{shown} is not enclosed: it took longer than {_SECONDS:.0f} s.")
            return
        except ToolError as error:
            self._notices.append(f"{shown} is not enclosed: {self._hidden(error.text)}")
            return
        if enclosure is not None:
            self._add(enclosure)

    def _add(self, enclosure: Enclosure) -> None:
        blocks = tuple(map(self._redacted, enclosure.content))
        self._room -= sum(size_of(block.text) if isinstance(block, Text) else _IMAGE for block in blocks)
        self.enclosures.append(Enclosure(kind=enclosure.kind, origin=enclosure.origin, content=blocks))

    def _redacted(self, block: UserContent) -> UserContent:
        return Text(text=self._hidden(block.text)) if isinstance(block, Text) else block

    def _hidden(self, text: str) -> str:
        return self._sources.ports.redactor().redact(text)

    def _reading(self, named: Named, room: int) -> Callable[[], Awaitable[Enclosure | None]] | None:
        """Find out what is named; None for nothing. Raises `NotEnclosedError`."""
        if named.is_address:
            return lambda: self._page(named.target)
        located = self._locate(named)
        rule = self._sources.rule(named.target) if not located and not named.first else None
        if rule is not None:
            return lambda: _given(enclose(EnclosureKind.FILE, *rule))
        if located:
            folder = os.path.isdir(located)  # noqa: PTH112 - the path is text, with the bytes of any name in it
            return lambda: self._folder(named, located) if folder else self._file(named, located, room)
        if named.quoted or named.first:
            return None
        if named.target in self._sources.words:
            return lambda: self._word(named.target, room)
        return lambda: self._commit(named.target, room)

    def _locate(self, named: Named) -> str:
        """Give the path of what is there under this name; empty where nothing is."""
        special = not named.quoted and named.target in self._sources.words
        try:
            located = self._sources.workspace.paths.locate(named.target)
        except ToolError:
            return ""
        return located if not special and os.path.lexists(located) else ""

    async def _file(self, named: Named, located: str, room: int) -> Enclosure:
        place = judge_path(located)
        workspace = self._sources.workspace
        name = workspace.paths.display(located)
        if why := why_not(self._sources, READ_FILE, {"path": named.target}, place.accesses()):
            raise NotEnclosedError(why)
        if is_image(name) and not self._sources.sees_images():
            raise NotEnclosedError("the model cannot see images.")
        found = await read_mentioned(place, name, named, room)
        if found.digest:
            (workspace.seen.note if found.whole else workspace.seen.watch)(place.resolved, found.digest)
        return Enclosure(kind=EnclosureKind.FILE, origin=f"{name}{named.lines}", content=found.content)

    async def _folder(self, named: Named, located: str) -> Enclosure:
        name = self._sources.workspace.paths.display(located).rstrip("/")
        text = await self._call(LIST_FILES, {"path": named.target, "recursive": True})
        return enclose(EnclosureKind.FOLDER, f"{name}/", text)

    async def _page(self, url: str) -> Enclosure:
        text = await self._call(WEB_FETCH, {"url": url})
        return enclose(EnclosureKind.PAGE, url, head_and_tail(text, self._most_of_one, "web_fetch shows the rest"))

    async def _word(self, word: str, room: int) -> Enclosure:
        kind, read = self._sources.words[word]
        return enclose(kind, word, await read(room))

    async def _commit(self, target: str, room: int) -> Enclosure | None:
        text = await self._sources.commit(target, room)
        return enclose(EnclosureKind.COMMIT, target, text) if text else None

    async def _call(self, spec: ToolSpec, arguments: dict[str, Any]) -> str:
        result = await call_allowed(self._sources, spec, arguments)
        if result.outcome is not Outcome.OK:
            raise NotEnclosedError(_short(plain(result.content).replace("\n", " ")))
        return plain(result.content)


async def call_allowed(calls: JudgedCalls, spec: ToolSpec, arguments: dict[str, Any]) -> CallResult:
    """Do what the tool of this name does, as for a call of the model that needs no approval.

    Raises `NotEnclosedError` with the reason where it would need one, or is denied.
    """
    ports, call = calls.ports, ToolCall(id="mention", name=spec.name, arguments=arguments)
    judged, prepared = await judge_call(ports, call, calls.standing())
    if isinstance(judged, CallFinished):
        return judged.result
    if (why := _reason(judged.decision)) or prepared is None:
        raise NotEnclosedError(why)
    effect = RunTool(call=call, digest=judged.decision.digest, rights=rights_of(judged.decision))
    return redacted(await run_call(prepared, effect, LiveOutput(), ports.trace), ports.redactor())


def why_not(calls: JudgedCalls, spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access]) -> str:
    """Say why the policy does not allow this without asking; empty where it does."""
    return _reason(calls.ports.judge(spec, arguments, accesses, calls.standing()))


def _reason(decision: Decision) -> str:
    if decision.verdict is Verdict.ALLOW:
        return ""
    why = words_of_decision(decision).headline
    asks = decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
    return f"{why}.{' If the model needs it, it asks you.' if asks else ''}"


async def _given(enclosure: Enclosure) -> Enclosure:
    return enclosure


def _short(text: str) -> str:
    line = visible(text)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
