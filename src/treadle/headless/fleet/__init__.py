"""Many workers on one database: who does which task, what the run has spent, and what became of it."""
