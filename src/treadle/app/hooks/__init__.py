"""Hooks: programs of the user, of a trusted folder or of a host that are asked and told at moments of a session."""
