"""What may be done with a file."""

from enum import StrEnum


class PathOp(StrEnum):
    """What is to be done: `list` shows names and facts, never contents."""

    LIST = "list"
    READ = "read"
    WRITE = "write"
