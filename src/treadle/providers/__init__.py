"""One module per wire API; vendors are rows of data."""
