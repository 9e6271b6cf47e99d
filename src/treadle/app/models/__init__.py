"""Which model works and how its provider is reached: names, keys, accounts, windows, lists."""
