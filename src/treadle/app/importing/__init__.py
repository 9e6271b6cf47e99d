"""Taking over what other programs have: their sessions, and the rules, servers and permissions of other agents."""
