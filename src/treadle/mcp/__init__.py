"""MCP servers as tools: loaded only where some are configured, and then beside the first request."""
