"""What a model must hold to, as checks that any implementation can be put through: `python -m engines.conformance STAGE`.

A check is a function over a bench that raises ConformanceFault; its docstring is its line in the report. samples.py says what
is put through, generation_bench.py and text_bench.py drive the model, and the files named *_checks.py hold it to its contract.
"""


class ConformanceFault(AssertionError):
    """What the model does that its contract forbids, in a sentence."""


class NotApplicable(Exception):
    """Why this check says nothing about this model."""
