"""The text that is being written: keys, pastes, pieces, completion."""
