"""Reference solutions, one module for each lesson: plain code, without types."""
