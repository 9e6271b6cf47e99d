"""A session as a whole: kept, exported, played again, copied, and taken back while it is closed."""
