"""The machine: pure, without clock, chance or I/O."""
