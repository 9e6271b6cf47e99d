"""The script surface."""
