"""Operands that another command of the line prints: what that command is told may name a secret."""

from collections.abc import Iterator, Sequence

from treadle.policy.findings import Finding
from treadle.policy.marks import is_static
from treadle.policy.shell.expand import expand_words
from treadle.policy.shell.readers import CONTENT_FREE
from treadle.policy.shell.scene import Scene
from treadle.policy.shell.syntax import Script, Simple, Substitution, Word

_ONLY_PRINTS = CONTENT_FREE | {"printf", "test", "[", ":", "true", "false", "readlink", "realpath", "cd", "export"}


def names_secret(words: Sequence[Word], program: str, scene: Scene) -> list[Finding]:
    """Judge `cat $(find . -name .env)` by the names that the inner command is given."""
    if program in _ONLY_PRINTS:
        return []
    scripts = (segment.script for word in words for segment in word.segments if isinstance(segment, Substitution))
    found = (one for script in scripts for text in _texts(script, scene) for one in scene.mentions(text))
    return [finding for finding in found if finding.rule == "secret-read"]


def _texts(script: Script, scene: Scene) -> Iterator[str]:
    for pipeline in script.pipelines:
        for command in pipeline.commands:
            if isinstance(command, Simple):
                yield from filter(is_static, expand_words(command.words, scene.variables, scene.cwd)[1:])
