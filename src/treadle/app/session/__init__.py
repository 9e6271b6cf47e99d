"""What a session is made of besides the engine, and the session as surfaces hold it."""
