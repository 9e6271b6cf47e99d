"""What became of files and the conversation when something was taken back."""

from collections.abc import Collection

from treadle.present.words import counted
from treadle.protocol.checkpoints import Restored


def files_back(written: Collection[str], removed: Collection[str]) -> str:
    """Say how many files are as they were before, and how many are gone as they were not there: 2 files restored."""
    parts = [f"{counted(len(written), 'file')} restored"] if written or not removed else []
    return ", ".join([*parts, *([f"{counted(len(removed), 'file')} deleted"] if removed else [])])


def restored_words(restored: Restored, *, conversation: bool) -> str:
    """Say what was restored, and what was not."""
    lines = ["The conversation is back at an earlier message."] if conversation and not restored.error else []
    if restored.checkpoint and (restored.written or restored.removed or not lines):
        lines.append(f"Checkpoint {restored.checkpoint}: {files_back(restored.written, restored.removed)}.")
    lines += [f"Not restored: {one.path}: {one.why}" for one in restored.conflicts]
    return "\n".join([*lines, *([restored.error] if restored.error else [])])
