"""The interactive terminal: inline, with the scrollback kept."""
