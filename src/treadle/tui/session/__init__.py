"""A session in the terminal: what happens is printed, what the person wants is done."""
