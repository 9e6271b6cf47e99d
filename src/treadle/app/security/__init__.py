"""The security layer on this machine: trust, rule files, approvals, and what is around a command."""
