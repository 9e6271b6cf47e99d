"""What a line does: walks its tree and judges every command by its shape."""
