"""Bridges: the pure functions on the edges of a pipeline. Each keeps the state of one request and runs in the downstream worker."""
