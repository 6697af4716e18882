"""Changing a job's step: a guide sees what the network predicts for its row and may put something else in its place.

So a robot's new chunk is held to the one under way (Black et al. 2025, arXiv 2506.07339), a picture to what is given of it.
"""

from typing import Protocol

from torch import Tensor


class Guide(Protocol):
    """Of one job. It sees one row in the network's own parametrisation: noisy `x`, its level `t`, and the prediction `clean`, all
    float32 [*shape]. None of them may be written, and what comes back must be finite values of the same shape."""

    @property
    def with_gradient(self) -> bool:
        """Whether it needs a vector-Jacobian product. Such rows cost a backward pass, which they share with each other, and
        share no forward with rows that need none."""
        ...

    def vector(self, x: Tensor, t: float, clean: Tensor) -> Tensor:
        """With gradient only, and before `guided`: what is to be pulled back through the network."""
        ...

    def guided(self, x: Tensor, t: float, clean: Tensor, pulled: Tensor | None) -> Tensor:
        """What stands for the prediction. `pulled` is vectorᵀ · ∂clean/∂x; None without gradient."""
        ...
