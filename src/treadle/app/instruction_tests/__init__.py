"""Tests of instructions: a prompt on a fixture, a model whose replies are taped, and what must hold of the log."""
