"""The event-driven loop: state, advance, ports, runtime."""
