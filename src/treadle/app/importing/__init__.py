"""Taking over what other coding agents know: rules, MCP servers, permissions."""
