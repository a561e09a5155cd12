"""The simulated GPU. See docs/simulator.md for what it does and does not do."""
