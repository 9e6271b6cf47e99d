"""The text of a line as a tree, and what its words stand for."""
