"""The user's own commands: slash commands, texts by their names, and shell lines."""
