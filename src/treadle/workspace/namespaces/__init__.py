"""What the commands of one session share: a network of their own, processes, and memory that processes share."""
