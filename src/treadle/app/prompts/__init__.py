"""The texts of the system prompt, a file for each part, and those of slash commands and agents that ship with it."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def command_prompt(command: str) -> str:
    """Read the text of a slash command that is a prompt for the model."""
    return (_FOLDER / f"command-{command}.md").read_text(encoding="utf-8").strip()


def agent_prompt(agent: str) -> str:
    """Read the system prompt of a built-in agent."""
    return (_FOLDER / f"agent-{agent}.md").read_text(encoding="utf-8").strip()
