"""Making long texts short: the beginning and the end stay, and a line between them says what is missing."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from treadle.protocol.messages import ContentBlock, ResultContent, Text, ToolResult

LEAST_KEPT = 400
"""Characters; a result is never cut below this."""

_HEAD = 2 / 3


def shorten(text: str, most: int, why: str) -> str:
    """Cut a text to about `most` characters, at line ends where they are near; `why` ends the line that says so."""
    if len(text) <= most:
        return text
    head = _until_line_end(text[: int(most * _HEAD)])
    tail = _from_line_start(text[len(text) - (most - int(most * _HEAD)) :])
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} characters left out: {why}]\n{tail}"


def _until_line_end(text: str) -> str:
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def _from_line_start(text: str) -> str:
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start < len(text) // 2 else text


def shorten_result(content: Sequence[ResultContent], most: int, why: str) -> tuple[ResultContent, ...]:
    """Cut the texts of a result so that they have about `most` characters together; media stay."""
    shares = fair_shares(
        {str(at): len(block.text) for at, block in enumerate(content) if isinstance(block, Text)}, most
    )
    return tuple(
        Text(text=shorten(block.text, shares[str(at)], why)) if isinstance(block, Text) else block
        for at, block in enumerate(content)
    )


def length(content: Sequence[ResultContent]) -> int:
    """Count the characters of a result's texts."""
    return sum(len(block.text) for block in content if isinstance(block, Text))


def fair_shares(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """Share `most` among texts of these sizes: small ones stay whole, the large ones get the same each."""
    left, shares = most, dict[str, int]()
    for number, (name, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[name] = min(size, max(LEAST_KEPT, left // (len(sizes) - number)))
        left = max(0, left - shares[name])
    return shares


def with_content(block: ContentBlock, contents: Mapping[str, tuple[ResultContent, ...]]) -> ContentBlock:
    """Put another content in the place of that of a result, by the call's id."""
    if not isinstance(block, ToolResult) or block.call_id not in contents:
        return block
    return replace(block, content=contents[block.call_id])
