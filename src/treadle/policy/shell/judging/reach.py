"""Where a program's words lead that is not known: files it may write, home, the root, devices, other repositories."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.policy.findings import Finding, PathOp, dangerous
from treadle.policy.marks import from_both_ends, is_static
from treadle.policy.shell.judging.scene import PipedInput, Scene
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


MAX_PIECES = 40

_PLAIN_DEVICES = re.compile(r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd(/.*)?|shm(/.*)?)")
_TREES = re.compile(r"/+|/(home|root|etc|usr|var|bin|sbin|lib\w*|boot|opt|srv|Users|System|Library|Applications)/?")
_CUTS = re.compile(r"[;&|\n(){}`!%]+")
_BLANKS = re.compile(r"[\s,\[\]\"']+")
_TOKENS = re.compile(r"[\s'\"`()\[\]{};,<>|&=!]+")
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_DESTROYS = frozenset({"delete-tree", "delete-all", "delete-list", "write-outside", "control-write", "reach"})


def judge_reach(name: str, words: Sequence[str], scene: Scene) -> list[Finding]:
    """Find an operand, or the value of an option, that is a place to be left alone."""
    if scene.is_search:
        return []
    for text in dict.fromkeys(text for word in words for text in (word, *word.partition("=")[2:])):
        what = _place(text, scene) if is_static(text) and text else None
        if what is not None:
            return [dangerous("reach", f"{name} is given {text}, {what}, and may do anything with it")]
    given = () if _CONTAINERS.isdisjoint((name, *words)) else words
    mounted = [found for word in given for place in _mounted(word) for found in scene.path(place, PathOp.WRITE)]
    return [found for found in mounted if found.risk is Risk.CRITICAL]


def _mounted(word: str) -> list[str]:
    """Give the folder of this machine that a container gets, `/x` of `/x:/y` and of `type=bind,source=/x`."""
    found = re.search(r"(?:^|[,=])(?:source=|src=)?([/~.][^:,]*)(?=:/|,|$)", word)
    return [found[1]] if found and (":/" in word or "," in word) and "://" not in word else []


def judge_inner_text(text: str, scene: Scene) -> list[Finding]:
    """Find in text of another language a command that destroys, wherever a shell's or that language's words end."""
    if scene.is_guess or not is_static(text):
        return []
    scene = replace(scene, feed=PipedInput(), is_guess=True)
    pieces = from_both_ends(_CUTS.split(text))[:MAX_PIECES]
    found = (one for piece in pieces for one in scene.command(tuple(_BLANKS.sub(" ", piece).split()[:20])))
    return [one for one in dict.fromkeys(found) if one.rule in _DESTROYS]


def judge_named_places(text: str, scene: Scene) -> list[Finding]:
    """Find a place to be left alone that program text names; a lone slash or a folder of the system says nothing."""
    for token in filter(is_static, dict.fromkeys(_TOKENS.split(text))):
        if token[:1] in ("/", "~") and not _TREES.fullmatch(token) and (what := _place(token, scene)) is not None:
            return [dangerous("reach", f"the program text names {token}, {what}")]
    return []


def _place(word: str, scene: Scene) -> str | None:
    """Say what a word leads to when that is no place for unknown programs."""
    if word == "~" or (word[0] in "~/." and _is_home(word, scene)):
        return "the home directory"
    if _TREES.fullmatch(word):
        return "a directory of the system"
    if word.startswith("/dev/"):
        return None if _PLAIN_DEVICES.fullmatch(word) else "a device"
    if word.startswith(("/", "~/", "../")) or word == "..":
        return "another repository" if _is_other_repository(word, scene) else None
    return None


def _resolved(word: str, scene: Scene) -> str:
    home = scene.context.home
    spelled = posixpath.join(home, word[2:]) if word.startswith("~/") and home else word
    return scene.context.files.resolve(posixpath.join(scene.cwd, spelled)).rstrip("/") or "/"


def _is_home(word: str, scene: Scene) -> bool:
    home = scene.context.home
    return bool(home) and (home + "/").startswith(_resolved(word, scene).rstrip("/") + "/")


def _is_other_repository(word: str, scene: Scene) -> bool:
    files, place = scene.context.files, _resolved(word, scene)
    roots = [files.resolve(root).rstrip("/") + "/" for root in scene.context.roots]
    return files.facts(posixpath.join(place, ".git")) is not None and not f"{place}/".startswith(tuple(roots))
