"""Running commands: guards, output, limits, background."""
