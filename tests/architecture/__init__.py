"""The shape of the code: layers, closed unions, generated pages."""
