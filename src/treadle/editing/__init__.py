"""The edit engine: pure text to text."""
