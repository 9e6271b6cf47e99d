"""The MCP server: other programs' models start tasks here, follow and answer them."""
