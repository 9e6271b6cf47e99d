"""What is made of the log of a past session."""
