"""What the model is told to follow: the system prompt, rule files and skills."""
