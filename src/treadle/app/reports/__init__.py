"""What a person or a script is told: checks, lists, explanations, past sessions."""
