"""Incremental parsers: streamed replies to text and tool calls."""
