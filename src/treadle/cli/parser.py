"""The parser of one command."""

import argparse


class CommandParser(argparse.ArgumentParser):
    """A parser that can be asked what it takes, so that completion is written from it."""

    @property
    def actions(self) -> tuple[argparse.Action, ...]:
        """Its flags and operands, in their order."""
        return tuple(self._actions)
