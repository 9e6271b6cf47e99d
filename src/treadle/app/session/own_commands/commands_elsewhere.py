"""Commands that other programs have, and what does it here."""

from collections.abc import Mapping
from types import MappingProxyType

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "models": "To choose a model: /model",
        "continue": "To continue the last session of this folder: treadle --continue",
        "sessions": "To choose another session: /resume",
        "settings": "To see the settings: /config",
        "reset": "To start a new session: /new",
        "name": "To name the session: /rename NAME",
        "branch": "To copy the session: /fork",
        "bug": "To check the installation: treadle doctor; to write the session to a file: /export",
        "cd": "A session stays in its folder. To add one: /add-dir PATH; to start elsewhere: treadle -C DIR",
        "checkpoint": "To go back: /rewind, or /undo",
        "checkpoints": "To go back: /rewind, or /undo",
        "commit": "Ask for it in words, or run it yourself: ! git commit",
        "compress": "To free space in the window: /compact",
        "history": "To choose another session: /resume; for earlier messages: ↑",
        "ide": "Editors start Treadle themselves: treadle acp",
        "keybindings": "`?` on an empty line shows the keys. To change them: `[keys]` in your settings",
        "keys": "`?` on an empty line shows the keys. To change them: `[keys]` in your settings",
        "logout": "To remove a stored key: treadle logout PROVIDER",
        "redo": "To bring files back to a checkpoint: treadle checkpoint restore",
        "restore": "To go back: /rewind, or /undo",
        "run": "To run a command yourself: ! COMMAND",
        "sandbox": "Commands run in a sandbox in every mode but full. To change the mode: /mode NAME",
        "save": "Sessions are saved automatically. To write one to a file: /export",
        "share": "To write the session to a file: /export html",
        "stats": "To see what was used: /usage",
        "statusline": 'To show a line of your own: treadle config set status_line "COMMAND"',
        "think": "To choose how much the model thinks: /effort",
        "tokens": "To see what the model was sent: /context",
        "tools": "To list the tools: treadle tools",
        "update": "To bring Treadle up to date: treadle update",
        "upgrade": "To bring Treadle up to date: treadle update",
        "vim": "To edit the input line with vim's keys: treadle config set editing vim",
        "yolo": "To run everything but what is dangerous without asking: /mode full",
    }
)
"""By the name of the command, a sentence or two."""
