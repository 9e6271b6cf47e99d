"""The terminal as plain lines, for screen readers: nothing is drawn twice, and no control sequence is written."""
