"""MCP servers: where they are configured, how they are confined, and what a session makes of them."""
