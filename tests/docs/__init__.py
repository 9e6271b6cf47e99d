"""What the documents claim is true: each claim is taken out of them and looked up, or run."""
