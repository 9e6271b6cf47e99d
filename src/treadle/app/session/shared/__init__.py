"""Sessions that more than one process or surface has: sockets, attaching, catching up."""
