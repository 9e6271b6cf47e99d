"""The vocabulary: messages, events, ops, tools, permissions, models, errors, JSON codec."""
