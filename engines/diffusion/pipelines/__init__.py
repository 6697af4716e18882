"""Diffusers pipelines, unmodified, whose jobs share the calls of their networks.

Each job runs the pipeline's own `__call__` in a greenlet (run), on a shallow copy whose networks are stand-ins (stand_ins): they
switch out with a Call (calls) and get its output back. Calls of equal keys are merged along the batch axis (merging); which
arguments that concerns is learned by running the pipeline, not listed for each of them (roles, learning).
"""
