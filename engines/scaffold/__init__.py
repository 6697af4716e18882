"""Writes what a new model needs, working from the first minute: `python -m engines.scaffold NAME`."""
