"""Adapters to models: one module per wire API, vendors as rows of data, and a model that plays a script."""
