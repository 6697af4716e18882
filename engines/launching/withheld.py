"""What a child that decodes what strangers send, or runs a model, is not told."""

import os
from collections.abc import Mapping

SECRETS = frozenset(
    {
        "ANTIPHON_API_KEY",
        "ANTIPHON_SIGNING_KEY",
        "ANTIPHON_SNAPSHOT_KEY",
        "ANTIPHON_STORE_PASSWORD",
        "ANTIPHON_TURN_SECRET",
    }
)
"""Variables that the gateway alone needs, be it one node or several. A new one belongs here, too."""


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in SECRETS}
