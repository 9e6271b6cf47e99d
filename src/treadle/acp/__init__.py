"""The surface for editors: an agent that speaks the Agent Client Protocol on its standard streams."""
