"""Many tasks from a file, side by side, each in a copy, a session and a process of its own."""
