"""The terminal surface."""
