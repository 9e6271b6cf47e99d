"""A model that plays a script: in process, or over HTTP in the wire formats of real providers."""
