"""The command line of a host: the flags of Claude Code that SDKs send, read so that no unknown one ends the program."""

import re
from collections import deque
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

_SWITCHES = frozenset(
    {
        "verbose",
        "continue",
        "fork_session",
        "include_partial_messages",
        "include_hook_events",
        "strict_mcp_config",
        "replay_user_messages",
        "trust",
    }
)
"""Flags without a value."""

_VALUES = frozenset(
    {
        "print",
        "output_format",
        "input_format",
        "tools",
        "allowed_tools",
        "disallowed_tools",
        "max_turns",
        "max_budget_usd",
        "model",
        "fallback_model",
        "permission_prompt_tool",
        "permission_mode",
        "resume",
        "resume_session_at",
        "resume_drops_turn",
        "session_id",
        "settings",
        "add_dir",
        "agents",
        "mcp_config",
        "setting_sources",
        "thinking",
        "max_thinking_tokens",
        "effort",
        "json_schema",
        "system_prompt",
        "system_prompt_file",
        "append_system_prompt",
        "append_system_prompt_file",
        # Treadle's own, which a host may send besides.
        "directory",
        "base_url",
        "mode",
        "tool_protocol",
        "max_seconds",
        "max_tokens",
    }
)
"""Flags that take the next word, whatever it is."""

_UNUSED_VALUES = frozenset(
    {
        "task_budget",
        "betas",
        "agent",
        "plugin_dir",
        "thinking_display",
    }
)
"""Flags with a value that change nothing here."""

_ALSO = MappingProxyType(
    {
        "p": "print",
        "c": "continue",
        "r": "resume",
        "C": "directory",
        "max_steps": "max_turns",
        "max_cost": "max_budget_usd",
        "fallback": "fallback_model",
    }
)
_LISTS = frozenset({"allowed_tools", "disallowed_tools", "add_dir", "mcp_config", "agents"})
_WITHOUT_FLAG = frozenset({"print", "resume"})
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class HostFlags:
    """What a command line says, by the names of the flags with `_`; a flag of a list has all its values.

    `words` are those without a flag, of which the first can be the task; `notes` say what is not used. `unknown` are
    the flags that hosts do not have.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.said: dict[str, Any] = {}
        self.words: list[str] = []
        self.notes: list[str] = []
        self.unknown: list[str] = []
        rest = deque(words)
        while rest:
            self._take(rest.popleft(), rest)
        unused = self.words if self.get("print") else self.words[1:]
        self.notes += [f"The word {word!r} is not used: it belongs to no flag." for word in unused]

    def get(self, name: str) -> str | None:
        """Give the value of a flag; None where it was not given."""
        value = self.said.get(name)
        return None if value is None else str(value)

    def all(self, name: str) -> list[str]:
        """Give every value of a flag."""
        return list(self.said.get(name, ()))

    def has(self, name: str) -> bool:
        """Whether a flag was given."""
        return name in self.said

    def _take(self, word: str, rest: deque[str]) -> None:
        if not word.startswith("-") or word == "-":
            self.words.append(word)
            return
        if word == "--":
            self.words += rest
            rest.clear()
            return
        flag, parted, value = _parted(word)
        name = _HUMPS.sub("_", flag.lstrip("-")).replace("-", "_")
        name = _ALSO.get(name, name.lower() if flag.startswith("--") else name)
        if name in _SWITCHES and not parted:
            self.said[name] = True
        elif name in _SWITCHES:
            self.notes.append(f"The flag {flag} is not used: it takes no value, but got {value!r}.")
        elif name in _VALUES:
            self._keep(name, value if parted else self._value(name, rest))
            while name in _LISTS and rest and not rest[0].startswith("-"):
                self._keep(name, rest.popleft())
        else:
            if name in _UNUSED_VALUES and not parted and rest:
                rest.popleft()
            self.unknown.append(flag)
            self.notes.append(f"The flag {flag} is not used: hosts have no such flag.")

    def _value(self, name: str, rest: deque[str]) -> str:
        """Take the value of a flag: any word, but for the task, which others give without the flag."""
        if not rest or (name in _WITHOUT_FLAG and rest[0].startswith("-") and rest[0] != "-"):
            return ""
        return rest.popleft()

    def _keep(self, name: str, value: str) -> None:
        if name in _LISTS:
            self.said.setdefault(name, []).append(value)
        else:
            self.said[name] = value


def _parted(word: str) -> tuple[str, bool, str]:
    """Part a flag from the value in the same word, if there is one."""
    flag, mark, value = word.partition("=")
    if word[1] != "-" and _ALSO.get(word[1]) in _VALUES and len(flag) > 2:  # -CDIR
        return word[:2], True, word[2:]
    return flag, bool(mark), value
