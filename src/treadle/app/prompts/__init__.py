"""The texts of the system prompt, a file for each part."""
