"""What runs the machine: the queue, the tasks, and who listens."""
