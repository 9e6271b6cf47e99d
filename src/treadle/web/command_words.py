"""What the slash commands do, in the words of the page: with what can follow each, and no signs for that."""

from collections.abc import Mapping
from types import MappingProxyType

COMMANDS_ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "steer": "send a message at the next step: write it after the command",
        "mode": "go to another mode: plan, ask, edits, auto or full",
        "plan": "look and plan, change nothing; a task that follows is sent then",
        "act": "leave the planning: from now on Treadle asks before changes; a task that follows is sent then",
        "model": "choose the model by its name: provider/name",
        "profile": "list the profiles of keys; a name uses one in this session, usual the keys without a profile",
        "effort": "how much the model thinks: off, low, medium or high",
        "btw": "ask a question beside the work; it does not stay in the conversation",
        "compact": "free space in the model's window; say after it what must be kept",
        "pin": "keep a text in the conversation when it is compacted; alone it lists them, off and a number drops one",
        "goal": "keep working until a condition is met that you write after it; pause, resume or clear it",
        "rename": "give the session another name: write it after the command",
        "fork": "copy the session as it is now, or as it was after the turn with a number; this one does not change",
        "rewind": "go back to before the message with a number: files, conversation, or both",
        "export": "write the session to a file: md, html or json",
        "context": "show what the model was sent: each part with its tokens and price",
        "usage": "show what all sessions used: by model, day, project, profile, tool, mode or session",
        "mcp": "list the MCP servers and their state; approve and a name accepts the tools of one as they are now",
        "ports": "list the ports on which commands listen; a number opens one here, close and a number closes it",
        "rules": "list the rules for the model, with their tokens; off or on and a number turns one off or on",
        "newrule": "let the model write a rule for this project; say after it about what",
        "memory": "list what is remembered; add and a text, forget and a number, or edit changes it",
        "skills": "list the skills; a slash and the name of one uses it",
        "revoke": "take an approval back by its number: /approvals lists them",
        "help": "show the commands, or what one does",
        "review": "review what is not committed, or a range of git; list: what was found; apply and a number: fix one",
        "copies": "list the kept copies of this folder; show, apply or discard and the name of one does that",
    }
)
"""By name, those of which the table says it in signs; what else is entered reads everywhere the same."""
