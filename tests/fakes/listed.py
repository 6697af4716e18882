"""The numbers of a tensor, which torch's own tolist leaves without a type."""

from typing import Any

from torch import Tensor


def listed(values: Tensor) -> list[Any]:
    return values.numpy().tolist()
