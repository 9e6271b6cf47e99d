"""How things look: colours, lines, diffs, the scrollback and the pager."""
