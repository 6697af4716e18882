"""Fixtures for every test."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def weights() -> Callable[[str], Path]:
    """The folder of a model's weights, as fetched by the set-up."""
    from engines.weights import directory

    return directory
