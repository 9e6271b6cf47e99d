"""The tags of a set of tools, compiled once: what may open, close or follow."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.parsing.aliases import NEW, OLD
from treadle.parsing.reply_blocks import ToolGrammar
from treadle.protocol.patterns import regex

NOT_BLANK = regex(r"[^ \t\r\n]")
ANY_TAG = regex(r"<([A-Za-z_][\w.-]{0,63})>")
_ANY_TAG_BEGUN = regex(r"<(?:[A-Za-z_][\w.-]{0,63})?\Z")


class BegunTags(Struct, frozen=True):
    """Every way in which one of some tags can be begun and not ended."""

    prefixes: frozenset[str]
    longest: int

    @classmethod
    def of(cls, tags: Sequence[str]) -> "BegunTags":
        """The beginnings of `tags`."""
        prefixes = frozenset(tag[:end] for tag in tags for end in range(1, len(tag)))
        return cls(prefixes, max(map(len, tags), default=1))

    def start(self, data: str, pos: int) -> int:
        """Where (not before `pos`) `data` ends in a begun tag that more text may end; else its length."""
        size = len(data)
        at = data.rfind("<", max(pos, size - self.longest), size)
        return at if at >= 0 and data[at:] in self.prefixes else size


def any_tag_begun(data: str, pos: int) -> bool:
    """Whether `data` ends, from `pos` on, in a tag of any name that is not yet closed."""
    return _ANY_TAG_BEGUN.match(data, pos) is not None


class ToolTags:
    """The tags of one tool."""

    __slots__ = ("_values", "begun", "close", "grammar", "open", "parameters")

    def __init__(self, grammar: ToolGrammar) -> None:
        self.grammar = grammar
        self.open = f"<{grammar.name}>"
        self.close = f"</{grammar.name}>"
        self.parameters = {f"<{name}>": name for name in (*grammar.parameters, *grammar.aliases)}
        self.begun = BegunTags.of([self.close, *self.parameters])
        self._values: dict[str, ValueTags] = {}

    def inside(self, name: str) -> "ValueTags":
        """The tags that matter inside a parameter."""
        if name not in self._values:
            self._values[name] = ValueTags(self, name)
        return self._values[name]

    def meant(self, names: Iterable[str]) -> set[str]:
        """The parameters that a call with these tags has, those that stand for others together included.

        An old and a new text are a `diff`, and a `diff` with its file is a `patch`.
        """
        meant = {self.grammar.aliases.get(name, name) for name in names}
        if "patch" in meant:
            return meant | {"diff", OLD, NEW}
        if "diff" in meant:
            meant |= {OLD, NEW}
        elif {OLD, NEW} <= meant:
            meant.add("diff")
        return meant | {"patch"} if {"path", "diff"} <= meant and "patch" in self.grammar.parameters else meant

    def follow(self, data: str, pos: int) -> str | None:
        """A parameter's opening or the tool's closing tag at `pos`; `""` if it is only begun; else None."""
        end = data.find(">", pos, pos + self.begun.longest)
        if end < 0:
            return "" if self.begun.start(data, pos) == pos else None
        tag = data[pos : end + 1]
        return tag if tag == self.close or tag in self.parameters else None


class ValueTags:
    """The tags that matter inside one parameter; the parameter `""` is one that the tool does not have."""

    __slots__ = ("begun", "close", "pattern")

    def __init__(self, tool: ToolTags, name: str) -> None:
        self.close = f"</{name}>" if name else ""
        tags = [tag for tag in (self.close, tool.close, tool.open) if tag]
        self.pattern = re.compile("|".join(map(re.escape, tags)))
        self.begun = BegunTags.of(tags)


class TagSet:
    """The opening tags of all tools, and those of reasoning if it is told apart."""

    __slots__ = ("begun", "by_open", "pattern")

    def __init__(self, tools: Sequence[ToolGrammar], reasoning: Sequence[str] = ()) -> None:
        self.by_open = {tags.open: tags for tags in map(ToolTags, tools)}
        opens = [*self.by_open, *(tag for tag in reasoning if tag not in self.by_open)]
        self.pattern = re.compile("|".join(map(re.escape, opens)) or r"(?!)")
        self.begun = BegunTags.of(opens)

    def balanced_opens(self, text: str) -> frozenset[int]:
        """The places in `text` where a call opens that also closes; in one pass.

        The tags of each tool are paired like brackets, so an opening tag that was never closed does not take
        the closing tag of a later call.
        """
        closes = {tags.close: tags for tags in self.by_open.values()}
        pattern = re.compile("|".join(map(re.escape, [*self.by_open, *closes])) or r"(?!)")
        stacks: dict[str, list[int]] = {name: [] for name in closes}
        paired: set[int] = set()
        for match in pattern.finditer(text):
            tags = self.by_open.get(match[0])
            if tags is None:
                if stacks[match[0]]:
                    paired.add(stacks[match[0]].pop())
                continue
            following = NOT_BLANK.search(text, match.end())
            if following is not None and tags.follow(text, following.start()):
                stacks[tags.close].append(match.start())
        return frozenset(paired)
