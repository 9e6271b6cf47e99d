"""The texts of the system prompt, a file for each part, and those of slash commands that are prompts."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def command_prompt(command: str) -> str:
    """Read the text of a slash command that is a prompt for the model."""
    return (_FOLDER / f"command-{command}.md").read_text(encoding="utf-8").strip()
