"""Fixtures for every test."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure: each test has the global time-out instead.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def weights() -> Callable[[str], Path]:
    """The folder of a model's weights, as fetched by the set-up."""
    from engines.weights import directory

    return directory
