"""Files that a program writes by an option of the usual name, whatever else is known of the program."""

import re
from collections.abc import Iterator, Sequence

from treadle.policy.findings import Finding
from treadle.policy.marks import is_static
from treadle.policy.operations import PathOp
from treadle.policy.shell.scene import Scene
from treadle.protocol.tools import Risk

_LONG = re.compile(
    r"of|--?(out\w*([-_]\w*)?|(log|save|write|backup|temp)[-_](file|dir|directory|document|path|to|batch))"
)
_GLUED = re.compile(r"-[oO]([/~.].*)")


def judge_outputs(words: Sequence[str], scene: Scene) -> list[Finding]:
    """Find what is written outside the workspace or over a protected file; nothing found is no proof of anything."""
    found = (finding for path in _outputs(words) for finding in scene.path(path, PathOp.WRITE))
    return [finding for finding in found if finding.risk is Risk.CRITICAL]


def _outputs(words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        option, is_glued, value = word.partition("=")
        if word in ("-o", "-O") or (_LONG.fullmatch(option) and not is_glued):
            yield from (text for text in words[place + 1 : place + 2] if is_static(text))
        elif _LONG.fullmatch(option) and value and is_static(value):
            yield value
        elif (match := _GLUED.fullmatch(word)) and is_static(word):
            yield match[1]
