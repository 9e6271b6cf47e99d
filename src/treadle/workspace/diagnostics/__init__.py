"""Problems in files as language servers and linters see them, and which of them an edit brought."""
