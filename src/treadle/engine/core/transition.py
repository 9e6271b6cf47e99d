"""What every part of the machine gives: the next state, and what is wanted done because of it."""

from treadle.engine.core.effects import Effect
from treadle.engine.core.state import State

Transition = tuple[State, list[Effect]]
