"""The screens of the page: each has its routes, and knows nothing of the others."""
