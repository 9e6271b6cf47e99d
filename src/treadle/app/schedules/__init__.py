"""Schedules: tasks that are begun at times that a person said, by whichever server is there."""
