"""What is known of single programs, and how their options are read."""
