"""The first words of all commands in a tree, in the order of the text: what two parsers must agree on."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from treadle.policy.shell.syntax import (
    Arithmetic,
    Block,
    Calculation,
    Command,
    Conditional,
    Literal,
    Parameter,
    ProcessSubstitution,
    Redirect,
    Script,
    Segment,
    Simple,
    Substitution,
)


def command_names(script: Script) -> list[str]:
    """List the source of the first word of every command, substitutions included; `[[` and `((` for those."""
    return list(_of_script(script))


def _of_script(script: Script) -> Iterator[str]:
    for pipeline in script.pipelines:
        for command in pipeline.commands:
            yield from _of_command(command)


def _of_command(command: Command) -> Iterator[str]:
    match command:
        case Simple():
            yield from _of_simple(command)
        case Block(words=words, scripts=scripts, redirects=redirects):
            for word in words:
                yield from _of_segments(word.segments)
            for script in scripts:
                yield from _of_script(script)
            yield from _of_redirects(redirects)
        case Conditional(words=words, redirects=redirects):
            yield "[["
            for word in words:
                yield from _of_segments(word.segments)
            yield from _of_redirects(redirects)
        case Calculation(expression=expression, redirects=redirects):
            yield "(("
            yield from _of_segments(expression.inner)
            yield from _of_redirects(redirects)
        case _:
            assert_never(command)


def _of_simple(command: Simple) -> Iterator[str]:
    for assignment in command.assignments:
        yield from _of_segments(assignment.subscript)
        for value in assignment.values:
            yield from _of_segments(value.segments)
    if command.words:
        yield command.words[0].text
    for word in command.words:
        yield from _of_segments(word.segments)
    yield from _of_redirects(command.redirects)


def _of_redirects(redirects: Sequence[Redirect]) -> Iterator[str]:
    for redirect in redirects:
        yield from _of_segments(_redirected(redirect))


def _redirected(redirect: Redirect) -> Sequence[Segment]:
    return redirect.target.segments if redirect.here is None else redirect.here.body


def _of_segments(segments: Sequence[Segment]) -> Iterator[str]:
    for segment in segments:
        match segment:
            case Literal():
                continue
            case Substitution(script=script) | ProcessSubstitution(script=script):
                yield from _of_script(script)
            case Parameter(operand=inner) | Arithmetic(inner=inner):
                yield from _of_segments(inner)
            case _:
                assert_never(segment)
