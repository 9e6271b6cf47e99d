"""Addresses that may be reached."""
