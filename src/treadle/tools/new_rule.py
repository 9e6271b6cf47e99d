"""new_rule: a rules file of the project, or an entry of a memory file, written after a yes like any control file."""

import asyncio
import unicodedata
from collections.abc import Mapping
from datetime import date
from pathlib import PurePosixPath
from typing import Any, Protocol

from msgspec import Struct

from treadle.context.remembered import (
    LONGEST_ENTRY,
    MOST_REMEMBERED,
    MemoryEntry,
    read_memory,
    with_entry,
)
from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.protocol.tools import CallResult, EditReport, Outcome, Preview, ToolSpec, WritePath, result_text
from treadle.tools.declarations import NEW_RULE, RULE_FOLDER
from treadle.tools.edit_apply import replace_whole
from treadle.tools.file_changes import Wanted, prepare_changes
from treadle.workspace.files.diffs import compare
from treadle.workspace.files.text_files import TextFile, sha256
from treadle.workspace.workspace import Workspace

_LONGEST = 32_768
_MEMORY = {"memory": "project", "memory/project": "project", "memory/user": "user"}
"""The paths that mean a memory file, and whose it is."""

_REPLACE = regex(r"replace (\d{1,4}):\s*")


class MemoryBook(Protocol):
    """Where what is remembered is kept, for the `project` and for the `user`."""

    def read(self, whose: str, /) -> tuple[str, str | None]:
        """Give a file's path, and its text or None. Raises `ToolError` where it is not used."""
        ...

    def save(self, whose: str, before: str | None, text: str, /) -> None:
        """Replace a file, if it is as it was. Raises `ToolError`."""
        ...

    def holds_secret(self, text: str, /) -> bool:
        """Whether a text holds a secret."""
        ...

    def today(self) -> date:
        """Give the day with which an entry is dated."""
        ...


class NewRule(Struct, frozen=True):
    """Creates or replaces one rules file, or adds to a memory file."""

    workspace: Workspace
    memory: MemoryBook | None = None

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return NEW_RULE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Compare the rule with what is there; only files of the rules folder and of the memory are written."""
        content: str = arguments["content"]
        if not content.strip():
            raise ToolError("The rule is empty. Write what it says.", invalid=True)
        whose = _MEMORY.get(arguments["path"].strip())
        if whose is not None:
            return await asyncio.to_thread(self._remembered, whose, content)
        if len(content) > _LONGEST:
            raise ToolError(f"The rule is longer than {_LONGEST:,} characters. Write a shorter one.", invalid=True)
        path = _placed(arguments["path"])

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            return replace_whole(file.text if file else "", f"{content.strip()}\n", path)

        return await prepare_changes(self.workspace, (Wanted(path=path, rewrite=rewrite),))

    def _remembered(self, whose: str, content: str) -> Prepared:
        """Find out what a memory file would say then, and what it costs to carry that in each request."""
        memory = self.memory
        if memory is None:
            raise ToolError("Nothing is remembered in this session. Continue without it.")
        replaces = _REPLACE.match(content.strip())
        said = " ".join(content.strip()[replaces.end() if replaces else 0 :].split())
        _check(said)
        if memory.holds_secret(said):
            raise ToolError("This holds a secret, which is never remembered. Say where it is found instead.")
        path, before = memory.read(whose)
        entries = read_memory(before or "")
        replaced = _entry(entries, int(replaces[1])) if replaces else None
        if any(entry.text == said for entry in entries):
            raise ToolError("This is remembered already. Continue with the task.")
        text = with_entry(before or "", said, memory.today(), replaced)
        cost = sum(entry.tokens for entry in read_memory(text))
        added = cost - sum(entry.tokens for entry in entries)
        if cost > MOST_REMEMBERED and added >= 0:
            raise ToolError(_full(entries, cost - added))

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - there is none
            await asyncio.to_thread(memory.save, whose, before, text)
            return result_text(Outcome.OK, f"Remembered: {said} It is sent from the next session on.")

        of = "this project" if whose == "project" else "you, in every project"
        return Prepared(
            accesses=(WritePath(path=path, before=_digest(before), after=_digest(text)),),
            preview=Preview(
                title=f"Remember for {of}: {added:+,} tokens in each request, then {cost:,} of {MOST_REMEMBERED:,}",
                text=compare(before or "", text).unified("memory.md"),
                is_diff=True,
            ),
            run=run,
        )


def _check(said: str) -> None:
    """Refuse what is no short plain text. Raises `ToolError`."""
    if not said:
        raise ToolError("There is no text after the number. Write what to remember.", invalid=True)
    if len(said) > LONGEST_ENTRY:
        raise ToolError(
            f"That is {len(said):,} characters, of at most {LONGEST_ENTRY}. Write it shorter: one thing.", invalid=True
        )
    if any(unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp") for char in said):
        raise ToolError("There are control or invisible characters in it. Write plain text.", invalid=True)


def _entry(entries: tuple[MemoryEntry, ...], number: int) -> MemoryEntry:
    if not 1 <= number <= len(entries):
        raise ToolError(
            f"There is no entry {number} in this memory. Use a number of the list.{_listed(entries)}", invalid=True
        )
    return entries[number - 1]


def _full(entries: tuple[MemoryEntry, ...], tokens: int) -> str:
    return (
        f"The memory is full: {tokens:,} of {MOST_REMEMBERED:,} tokens. Nothing was written. If this matters more than "
        f"one of its entries, call again with the content `replace N: TEXT`.{_listed(entries)}"
    )


def _listed(entries: tuple[MemoryEntry, ...]) -> str:
    rows = [f"{number}. {entry.line} ({entry.tokens:,} tokens)" for number, entry in enumerate(entries, 1)]
    return "\n".join([" Its entries:", *rows]) if rows else " It is empty."


def _digest(text: str | None) -> str:
    return "" if text is None else sha256(text.encode())


def _placed(path: str) -> str:
    """Give the path of a rule in the rules folder; a bare name is one in it. Raises `ToolError` for any other."""
    asked = PurePosixPath(path.strip().removeprefix("./"))
    name = asked.name.removesuffix(".md")
    if not name or asked.parent not in (PurePosixPath(), PurePosixPath(RULE_FOLDER)):
        raise ToolError(
            f"A new rule is a file directly in {RULE_FOLDER}. Use a path such as {RULE_FOLDER}/testing.md; to change "
            "another rules file, edit it.",
            invalid=True,
        )
    return f"{RULE_FOLDER}/{name}.md"
