"""Serving programs that use Treadle, and browsers: own parts, answers with a schema, sockets, certificates."""
