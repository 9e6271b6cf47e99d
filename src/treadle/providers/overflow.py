"""The context window that a refusal names, in the wordings of many vendors."""

import re

LEAST, MOST = 1_000, 100_000_000
"""What can be a window (tokens); other numbers are something else."""

_NUMBER = r"(\d[\d,_]*)"
_WORDINGS = tuple(
    text.replace("#", _NUMBER)
    for text in (
        r"(?:maximum|max) (?:context|prompt|input) (?:length|window)(?: of this model)?(?: is|:| of) (?:only )?#",
        r"prompt is too long: [\d,]+ tokens > # maximum",
        r"exceeds the maximum number of tokens allowed \(#\)",
        r"exceed context limit: [\d,]+ \+ [\d,]+ > #",
        r"available context size \(# tokens\)",
        r"too large for model with # maximum context length",
        r"range of input length should be \[\d+, #\]",
        r"context length (?:is|of) only #",
        r"exceeded model token limit: #",
        r"exceeds the (?:limit|maximum|context window|context length|token limit)(?: of| is|:) # ?(?:tokens|$|\.|\))",
        r"inputs?`? tokens \+ `?max_new_tokens`? must be <= #",
        r"maximum (?:allowed )?(?:number of )?(?:input )?tokens (?:allowed )?(?:is|:|of) #",
        r"context window of # tokens",
        r'"n_ctx": ?#',
    )
)


def window_in(text: str) -> int | None:
    """Find the window (tokens) that a refusal of a conversation as too long names; None where it names none."""
    for wording in _WORDINGS:
        found = re.search(wording, text, re.IGNORECASE)
        if found:
            window = int(re.sub(r"\D", "", found[1]))
            return window if LEAST <= window <= MOST else None
    return None
