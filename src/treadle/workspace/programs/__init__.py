"""Programs of the model: Python that runs shut off from everything, and reaches only what Treadle does for it."""
