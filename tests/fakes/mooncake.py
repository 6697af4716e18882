"""Mooncake where its libraries are; elsewhere whoever asks for it is skipped with the reason."""

import functools

import pytest

from engines.connectors.mooncake_engine import MooncakeEngine, MooncakeMissing


def mooncake_engines() -> tuple[MooncakeEngine, MooncakeEngine]:
    """A producer's and a consumer's."""
    try:
        return _made()
    except MooncakeMissing as missing:
        pytest.skip(str(missing))


@functools.cache
def _made() -> tuple[MooncakeEngine, MooncakeEngine]:
    """They take half a second each to start."""
    return MooncakeEngine("127.0.0.1"), MooncakeEngine("127.0.0.1")
