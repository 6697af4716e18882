"""Bridges: the pure functions on the edges of a pipeline. Each serves one request and runs in the downstream worker."""
