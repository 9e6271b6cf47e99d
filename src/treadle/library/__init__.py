"""Treadle in a program of your own: `from treadle import Treadle`. docs/library.md shows how."""

from treadle.door.opening import FileAccess, OwnModel
from treadle.library.agent import SettingKeywords, TaskRun, Treadle
from treadle.library.approving import Approval, Approve
from treadle.library.task_result import TaskResult
from treadle.protocol.events import Answer
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind

__all__ = [
    "Answer",
    "Approval",
    "Approve",
    "FileAccess",
    "Mode",
    "OptionKind",
    "OwnModel",
    "Question",
    "QuestionKind",
    "SettingKeywords",
    "TaskResult",
    "TaskRun",
    "Treadle",
]
