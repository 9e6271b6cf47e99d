"""One file per tool, its prompt text beside it."""
