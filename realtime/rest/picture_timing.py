"""The timing of pictures: that of every answer, and what the painter's step cache has saved."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from engines.payloads import Scalar
from sessions.voice.events import AnswerTiming


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """Of one picture: calls of the denoiser that were computed, and those that an earlier step's output answered. `psnr_db`: how
    near it is to the picture without that; None where the deployment does not compare."""

    computed_calls: int
    reused_calls: int
    psnr_db: float | None = None


class PictureTiming(AnswerTiming, frozen=True, kw_only=True):
    """Of all pictures of an answer; `psnr_db` that of the worst."""

    computed_calls: int | UnsetType = UNSET
    reused_calls: int | UnsetType = UNSET
    psnr_db: float | UnsetType = UNSET


def reuse(told: Mapping[str, Scalar]) -> Reuse | None:
    """From a chunk's attributes; None without a step cache."""
    if "reused_calls" not in told:
        return None
    psnr_db = told.get("psnr_db")
    return Reuse(
        computed_calls=int(told["computed_calls"]),
        reused_calls=int(told["reused_calls"]),
        psnr_db=None if psnr_db is None else float(psnr_db),
    )


def picture_timing(timing: AnswerTiming, pictures: Sequence[Reuse | None]) -> PictureTiming:
    known = [picture for picture in pictures if picture is not None]
    compared = [picture.psnr_db for picture in known if picture.psnr_db is not None]
    return PictureTiming(
        **msgspec.structs.asdict(timing),
        computed_calls=sum(picture.computed_calls for picture in known) if known else UNSET,
        reused_calls=sum(picture.reused_calls for picture in known) if known else UNSET,
        psnr_db=min(compared, default=UNSET),
    )
