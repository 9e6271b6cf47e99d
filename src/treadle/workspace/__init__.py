"""The only place with files and processes."""
