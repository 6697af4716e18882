"""What was found, in a file beside the deployment."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from realtime.deployment import Deployment
from sessions.admission.settings import CalibratedSeats

HEAD = """\
# Written by `antiphon calibrate`: how many sessions of a kind this machine runs side by side.
# A section `seats:` in the deployment's own file wins over this one.
"""


def keep(file: Path, deployment: Deployment, kind: str, found: CalibratedSeats) -> None:
    """Besides those of other kinds. The file is whole at any time."""
    seats: Mapping[str, CalibratedSeats] = {**deployment.seats, kind: found}
    plain = msgspec.to_builtins({"seats": seats})
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(HEAD + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
    new.replace(file)
