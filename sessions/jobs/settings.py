"""What the operator may set about films: the deployment's section `videos:`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0)]


class VideoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    directory: str = ""
    """Where films are kept until they are deleted, each host's in a folder of its own. Where all hosts see it, each serves the
    films of all. Empty: `antiphon/videos` in the folder of the user's state."""
    keep_s: Positive = 86_400.0
    """A job and its film are deleted so long after its end."""
    most: Count = 1_000
    """Jobs in the store, of all tenants, those that are over among them. Beyond it new ones are refused."""
    most_of_tenant: Count = 100
    most_bytes: Count = 8 << 30
    """All films of this host. Beyond it new jobs are refused, and a film that does not fit fails its job."""
    at_once: Count = 4
    """Jobs that a node works on at a time; tenants take turns."""

    def located(self, folder: Path) -> "VideoSettings":
        """With a relative directory counted from `folder`."""
        found = self.directory and os.path.abspath(folder / Path(self.directory).expanduser())
        return msgspec.structs.replace(self, directory=found)

    def place(self, environment: Mapping[str, str] = os.environ) -> Path:
        state = environment.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(self.directory) if self.directory else Path(state).expanduser() / "antiphon" / "videos"
