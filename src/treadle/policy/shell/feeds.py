"""What a command reads from the commands before it, or from those it takes its input from."""

from collections.abc import Sequence

from treadle.policy.marks import UNKNOWN
from treadle.policy.shell.expand import expand_words
from treadle.policy.shell.scene import Feed, Scene
from treadle.policy.shell.syntax import Command, Pipeline, Script, Simple


def fed_by(script: Script, scene: Scene) -> Feed:
    """Give what a script prints as the input of something else."""
    match script.pipelines:
        case (Pipeline(commands=commands),):
            return feed_of(commands, scene)
        case _:
            return Feed(upstream=((UNKNOWN,),))


def feed_of(commands: Sequence[Command], scene: Scene) -> Feed:
    """Give the input of what stands behind these commands of a pipeline."""
    return Feed(upstream=tuple(_argv(command, scene) for command in commands))


def _argv(command: Command, scene: Scene) -> tuple[str, ...]:
    if isinstance(command, Simple):
        return expand_words(command.words, scene.variables, scene.cwd) or ("",)
    return (UNKNOWN,)
