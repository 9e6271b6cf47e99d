"""The command line of the Landlock helper for a profile: what may be read and written, computed by leaving out.

Landlock grants rights to whole trees and cannot take any back below. So a tree that holds something forbidden is not
granted itself; its other entries are, one by one. (Names can be listed everywhere.) In a folder with protected
paths nothing new can be made beside them: that is strict, and it is why bubblewrap is taken first.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from treadle.workspace.sandbox.present import Present
from treadle.workspace.sandbox.profile import Profile, is_within

Children = Callable[[str], Sequence[str]]
"""Gives the absolute paths of what a folder holds."""

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def without(top: str, forbidden: Sequence[str], children: Children) -> Iterator[str]:
    """Cover a tree but for what is forbidden, with the fewest trees."""
    below = [path for path in forbidden if is_within(path, top)]
    if top in below:
        return
    if not below:
        yield top
        return
    for child in children(top):
        yield from without(child, below, children)


def landlock(helper: Sequence[str], profile: Profile, present: Present, children: Children) -> tuple[str, ...]:
    """Build the command line that goes before the command's own; `helper` runs `confine.py`."""
    kept = [*present.masked, *present.protected]
    shown = (*profile.folders, *present.readable, *present.writable)
    reading = [
        *without("/", [*present.masked, *present.hidden], children),
        *chain.from_iterable(without(path, present.masked, children) for path in shown),
    ]
    writing = [*_DEVICES, *profile.devices, *present.writable]
    if profile.change_root:
        writing += chain.from_iterable(without(folder, kept, children) for folder in profile.folders)
    return (
        *helper,
        *("--list", "/"),
        *chain.from_iterable(("--read", path) for path in dict.fromkeys(reading)),
        *chain.from_iterable(("--write", path) for path in writing),
        *("--tmp", profile.tmp),
        *chain.from_iterable(("--git", file) for _, file in profile.replaced[:1]),
    )
