"""Applying a model's edit to a text: the one place that knows the edit engine."""

import re

from treadle.protocol.errors import ToolError

_BLOCK = re.compile(
    r"^(?:-{3,}|<{3,}) ?SEARCH>?[ \t]*\n(?P<search>.*?)^={3,}[ \t]*\n"
    r"(?P<replace>.*?)^(?:\+{3,}|>{3,}) ?REPLACE>?[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


def apply_blocks(pre: str, diff: str) -> str:
    """Apply SEARCH/REPLACE blocks, each of which must stand in `pre` exactly once. Raises `ToolError`."""
    blocks = list(_BLOCK.finditer(diff.replace("\r\n", "\n") + "\n"))
    if not blocks:
        raise ToolError("The diff has no complete SEARCH/REPLACE block. Nothing was changed.")
    text = pre
    for number, block in enumerate(blocks, 1):
        search, replace = (_as_in(pre, block[name]) for name in ("search", "replace"))
        count = text.count(search) if search else 0
        if count != 1:
            found = "was not found" if count == 0 else f"stands in {count} places"
            raise ToolError(
                f"SEARCH block {number} {found}. Nothing was changed. "
                "Read the file and copy whole lines exactly, enough of them to be unique."
            )
        text = text.replace(search, replace)
    return text


def replace_whole(pre: str, content: str) -> str:
    """Take `content` instead of `pre`, in the line ends that `pre` uses throughout; the last line gets its end."""
    content = _as_in(pre, content)
    end = "\r\n" if _uses_crlf(pre) else "\n"
    if content and not content.endswith("\n") and (not pre or pre.endswith("\n")):
        content += end
    return content


def _as_in(pre: str, text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if _uses_crlf(pre) else text


def _uses_crlf(text: str) -> bool:
    return "\r\n" in text and text.count("\r\n") == text.count("\n")
