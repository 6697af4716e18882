"""Requests and their ways through the stages: owned here, in the gateway, and nowhere else."""
