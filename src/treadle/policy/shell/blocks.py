"""Judges what blocks run: groups, branches, and the rounds of loops."""

from dataclasses import replace

from treadle.policy.marks import UNKNOWN, is_glob, is_static
from treadle.policy.shell.changes import (
    assigned_names,
    changes_directory,
    jumps,
)
from treadle.policy.shell.expand import expand_word
from treadle.policy.shell.scene import Follow, Scene
from treadle.policy.shell.state import after_loop, agreed, either, forget
from treadle.policy.shell.syntax import Block

MAX_LOOP_VALUES = 16

_BRANCHES = frozenset({"if", "case"})
_OTHER_LOOPS = frozenset({"while", "until", "calculated for"})


def follow_block(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block as often as they may run; gives the scene as it is afterwards."""
    if block.kind in ("for", "select"):
        return _for(block, scene, follow)
    if block.kind in _OTHER_LOOPS:
        return _repeated(block, scene, follow)
    return _scripts(block, scene, follow)


def _scripts(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge the scripts of a block; a branch may run or not, so both directories stay possible."""
    for script in block.scripts:
        after = follow(script, scene)
        if block.kind not in ("subshell", "group"):
            after = replace(after, cwds=either(scene.cwds, after.cwds))
        if block.kind in _BRANCHES:
            after = replace(after, variables=agreed(scene.variables, after.variables))
        scene = after
    return scene


def _for(block: Block, scene: Scene, follow: Follow) -> Scene:
    values = [value for word in block.words for value in expand_word(word, scene.variables, scene.cwd)]
    if len(values) > MAX_LOOP_VALUES or not values:
        values = [*values[:MAX_LOOP_VALUES], UNKNOWN]
    # A name with blanks in it falls apart where it is not quoted.
    values = [value if not is_glob(value) or scene.fits_plain_names(value) else UNKNOWN for value in values]
    before, names = scene.variables, assigned_names(block.scripts)
    exact = all(map(is_static, values)) and not jumps(block.scripts)
    if not exact and changes_directory(block.scripts):
        scene = replace(scene, cwds=(UNKNOWN,))
    for value in values if exact or not names else (*values, *values):
        scene = _scripts(block, replace(scene, variables=scene.variables.with_value(block.name, value)), follow)
    if names and not exact:
        # The rounds above show danger; what they set may hold in any round, or in none.
        for value in values:
            variables = forget(scene.variables, names).with_value(block.name, value)
            scene = _scripts(block, replace(scene, variables=variables), follow)
    last = [] if exact and block.name not in names else [block.name]
    variables = after_loop(before, scene.variables, (*names, *last))
    if not last:
        variables = variables.with_value(block.name, values[-1])
    return replace(scene, variables=variables)


def _repeated(block: Block, scene: Scene, follow: Follow) -> Scene:
    """Judge a loop of which nobody knows how often it runs."""
    before, changed = scene.variables, assigned_names(block.scripts)
    cwds = (UNKNOWN,) if changes_directory(block.scripts) else scene.cwds
    after = replace(scene, cwds=cwds)
    for _ in range(2 if changed else 0):
        after = _scripts(block, after, follow)
    after = _scripts(block, replace(after, variables=forget(after.variables, changed)), follow)
    return replace(after, variables=after_loop(before, after.variables, changed))
