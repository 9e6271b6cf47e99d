"""Taking over what other coding agents were told: rules, MCP servers, permissions."""
