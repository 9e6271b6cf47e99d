"""The files of a session: its folders, its checkpoints, its checklist, and what editing them showed."""
