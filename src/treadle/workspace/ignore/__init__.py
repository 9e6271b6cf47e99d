"""What ignore files hide, and what git has."""
