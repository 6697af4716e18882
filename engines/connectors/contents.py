"""What a control message says about a payload: the payload itself, or (with other connectors) where it lies."""

from typing import TypeAlias

import msgspec

from engines.payloads import Payload


class Inline(msgspec.Struct, frozen=True, tag="inline"):
    payload: Payload


Content: TypeAlias = Inline
