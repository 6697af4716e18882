"""Model weights: what they are (manifest), how they get here (fetch), where they lie (cache)."""

from engines.weights.cache import WeightsError, WeightsMissing, directory

__all__ = ["WeightsError", "WeightsMissing", "directory"]
