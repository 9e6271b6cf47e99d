"""Judges what blocks run: groups, branches, and the rounds of loops."""

from dataclasses import replace

from treadle.policy.marks import UNKNOWN, is_glob
from treadle.policy.shell.changes import assigned_names, changes_directory
from treadle.policy.shell.expand import expand_word
from treadle.policy.shell.scene import Follow, Scene
from treadle.policy.shell.state import either, forget
from treadle.policy.shell.syntax import Block

MAX_LOOP_VALUES = 16

_IN_ORDER = frozenset({"subshell", "group"})
_LOOPS = frozenset({"for", "select", "while", "until", "calculated for"})


def follow_block(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block as often as they may run; gives the scene as it is afterwards.

    What a branch or a round of a loop sets may be set or not, so afterwards it is not known any more.
    """
    if block.kind in _IN_ORDER:
        return _scripts(block, scene, follow)
    names = assigned_names([*block.scripts])
    if block.kind not in _LOOPS:
        after = _scripts(block, scene, follow)
        return replace(after, variables=forget(after.variables, names))
    if changes_directory(block.scripts):
        scene = replace(scene, cwds=(UNKNOWN,))
    after = scene
    values = _values(block, scene)
    # Two rounds show what a later one reads of an earlier one; a third one what holds whichever of their steps ran.
    for unsure in (False, False, True) if names else (False,):
        for value in values:
            variables = forget(after.variables, names) if unsure else after.variables
            variables = variables.with_value(block.name, value) if block.name else variables
            after = _scripts(block, replace(after, variables=variables), follow)
    return replace(after, variables=forget(after.variables, (*names, block.name)))


def _scripts(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block; a branch may run or not, so both directories stay possible."""
    for script in block.scripts:
        after = follow(script, scene)
        scene = after if block.kind in _IN_ORDER else replace(after, cwds=either(scene.cwds, after.cwds))
    return scene


def _values(block: Block, scene: Scene) -> list[str]:
    """Give what the variable of a loop is set to, as far as it is known; one round for a loop without any."""
    values = [value for word in block.words for value in expand_word(word, scene.variables, scene.cwd)]
    if len(values) > MAX_LOOP_VALUES or not values:
        values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
    # A name with blanks in it falls apart where it is not quoted.
    return [value if not is_glob(value) or scene.fits_plain_names(value) else UNKNOWN for value in values]
