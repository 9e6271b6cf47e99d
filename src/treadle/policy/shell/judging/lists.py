"""What commands hand on: the input of a pipe, operands that another command prints, and lists of files."""

from collections.abc import Iterator, Sequence

from treadle.policy.findings import Finding, dangerous
from treadle.policy.marks import UNKNOWN, is_static
from treadle.policy.shell.grammar.expand import expand_word, expand_words
from treadle.policy.shell.grammar.syntax import (
    Block,
    Command,
    Literal,
    Parameter,
    Pipeline,
    Redirect,
    ShellScript,
    Simple,
    Substitution,
    Word,
)
from treadle.policy.shell.judging.many import breadth_of, is_whole, judge_each, judge_in_loop, judge_whole
from treadle.policy.shell.judging.scene import Breadth, PipedInput, Scene
from treadle.policy.shell.tables.readers import CONTENT_FREE


def fed_by(script: ShellScript, scene: Scene) -> PipedInput:
    """Give what a script prints as the input of something else."""
    match script.pipelines:
        case (Pipeline(commands=commands),):
            return feed_of(commands, scene)
        case _:
            return PipedInput(upstream=((UNKNOWN,),))


def feed_of(commands: Sequence[Command], scene: Scene) -> PipedInput:
    """Give the input of what stands behind these commands of a pipeline."""
    return PipedInput(upstream=tuple(_argv(command, scene) for command in commands))


def _argv(command: Command, scene: Scene) -> tuple[str, ...]:
    if isinstance(command, Simple):
        return expand_words(command.words, scene.variables, scene.cwd) or ("",)
    return (UNKNOWN,)


_ONLY_PRINTS = CONTENT_FREE | {"printf", "test", "[", ":", "true", "false", "readlink", "realpath", "cd", "export"}


def names_secret(words: Sequence[Word], program: str, scene: Scene) -> list[Finding]:
    """Judge `cat $(find . -name .env)` by the names that the inner command is given."""
    if program in _ONLY_PRINTS:
        return []
    scripts = (segment.script for word in words for segment in word.segments if isinstance(segment, Substitution))
    found = (one for script in scripts for text in _texts(script, scene) for one in scene.mentions(text))
    return [finding for finding in found if finding.rule == "secret-read"]


def _texts(script: ShellScript, scene: Scene) -> Iterator[str]:
    for pipeline in script.pipelines:
        for command in pipeline.commands:
            if isinstance(command, Simple):
                yield from filter(is_static, expand_words(command.words, scene.variables, scene.cwd)[1:])


_EMPTYING = frozenset({">", ">|", "&>"})


def judge_lists(command: Simple, words: tuple[str, ...], scene: Scene) -> list[Finding]:
    """Judge a command by the lists of files that its words and redirections hold."""
    breadths = dict(scene.each)
    findings = [found for redirect in command.redirects for found in _redirect(redirect, breadths, scene)]
    if not words or not is_static(words[0]):
        return findings
    for breadth in _operands(command.words, scene):
        findings.extend(judge_each(tuple(filter(is_static, words)), breadth, scene))
    if any(_prints_top(word, scene) for word in command.words[1:]):
        findings.extend(judge_whole(words[0], (*filter(is_static, words[1:]), "."), scene))
    for breadth in {breadths[name] for word in command.words[1:] for name in _names(word) if name in breadths}:
        findings.extend(judge_in_loop(words, breadth))
    return findings


def listed_in_loop(block: Block, feed: PipedInput, scene: Scene) -> tuple[tuple[str, Breadth], ...]:
    """Give the variables that a loop sets to each file of a list, and how much the list names."""
    if block.kind in ("for", "select"):
        whole = [
            Breadth.WHOLE
            for word in block.words
            for value in expand_word(word, scene.variables, scene.cwd)
            if not is_static(value) and is_whole(value, scene)
        ]
        breadths = [*_operands(block.words, scene), *whole]
        return ((block.name, max(breadths)),) if breadths else ()
    breadth = breadth_of(feed.upstream)
    if breadth is None or not block.scripts:
        return ()
    commands = (one for pipeline in block.scripts[0].pipelines for one in pipeline.commands)
    reads = [one for one in commands if isinstance(one, Simple) and one.words and one.words[0].text == "read"]
    return tuple((word.text, breadth) for one in reads for word in one.words[1:] if word.text.isidentifier())


def _operands(words: tuple[Word, ...], scene: Scene) -> Iterator[Breadth]:
    """Give the breadth of each `$(…)` outside quotes that prints a list."""
    for word in words:
        for segment in word.segments:
            if isinstance(segment, Substitution) and not segment.quoted:
                breadth = _printed(segment.script, scene)
                if breadth is not None:
                    yield breadth


def _prints_top(word: Word, scene: Scene) -> bool:
    """Whether a word is the folder of the whole repository."""
    match word.segments:
        case (Substitution(script=script),) | (Literal(text=""), Substitution(script=script)):
            return fed_by(script, scene).upstream == (("git", "rev-parse", "--show-toplevel"),)
        case _:
            return False


def _printed(script: ShellScript, scene: Scene) -> Breadth | None:
    return breadth_of(fed_by(script, scene).upstream)


def _redirect(redirect: Redirect, breadths: dict[str, Breadth], scene: Scene) -> Iterator[Finding]:
    """Judge what empties a file: each of a list, or whatever a pattern without a name stands for."""
    if redirect.operator not in _EMPTYING:
        return
    parts = [
        part for part in redirect.target.segments if part not in (Literal("", quoted=True), Literal("", quoted=False))
    ]
    is_each = len(parts) == 1 and not breadths.keys().isdisjoint(_names(redirect.target))
    targets = expand_word(redirect.target, scene.variables, scene.cwd)
    if is_each or any(not is_static(target) and is_whole(target, scene) for target in targets):
        yield dangerous("delete-list", f"empties each file that {redirect.target.text} stands for")


def _names(word: Word) -> Iterator[str]:
    yield from (segment.name for segment in word.segments if isinstance(segment, Parameter))
