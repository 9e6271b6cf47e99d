"""Reading and saving files: encodings, names, pages, documents."""
