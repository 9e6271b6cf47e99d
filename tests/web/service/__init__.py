"""The service for several users."""
