"""Painted pixels become files that players and browsers read."""

from io import BytesIO
from pathlib import Path
from typing import Any, Literal, cast

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.developer import Developer
from engines.models.film import film, reel
from engines.parameters import Development
from engines.payloads import Array, Payload
from fakes.uploads import drawn, opened

MODEL = Developer.load(Path(), {})


def painted(pixels: NDArray[np.uint8], **attributes: int) -> Payload:
    return Payload(arrays={"pixels": Array.of(pixels)}, attributes=dict(attributes))


def developed(wish: Development, *inputs: Payload) -> list[Produced]:
    state = MODEL.open(wish)
    made: list[Produced] = []
    for payload in inputs:
        [answer] = MODEL.run([(state, payload)])
        assert not isinstance(answer, InvalidInput), answer
        made += answer
    return made + MODEL.flush(state)


def data(produced: Produced) -> bytes:
    return bytes(produced.payload.arrays["bytes"].data)


def shown(file: bytes) -> tuple[list[NDArray[np.uint8]], float]:
    """Its frames, and how many come in a second."""
    with cast(Any, av).open(BytesIO(file)) as player:
        rate = float(player.streams.video[0].average_rate)
        return [frame.to_ndarray(format="rgb24") for frame in player.decode(video=0)], rate


def ramp(count: int, height: int = 48, width: int = 64) -> NDArray[np.uint8]:
    """Grey frames, each lighter than the one before."""
    return np.stack([np.full((height, width, 3), 20 + 8 * index, np.uint8) for index in range(count)])


@pytest.mark.parametrize("format", ["png", "jpeg", "webp"])
def test_each_picture_is_a_file_of_its_format(format: Literal["png", "jpeg", "webp"]) -> None:
    pixels = np.stack([drawn(seed=seed) // 8 + 100 for seed in range(2)])
    files = developed(Development(format, quality=100), painted(pixels, step=4, steps=4))
    for produced, picture in zip(files, pixels, strict=True):
        image = opened(data(produced))
        assert image.format == format.upper()
        assert np.abs(np.asarray(image).astype(int) - picture).mean() < (0.01 if format == "png" else 8)
        assert produced.payload.attributes == {"step": 4, "steps": 4, "format": format, "height": 12, "width": 16}
    assert sum(produced.units for produced in files) == 2


def test_less_quality_is_fewer_bytes() -> None:
    pixels = drawn(64, 64)[None]
    for format in ("jpeg", "webp"):
        sizes = [len(data(developed(Development(format, quality), painted(pixels))[0])) for quality in (0, 50, 100)]
        assert sizes == sorted(set(sizes))


def test_previews_and_progress_go_on_with_their_attributes() -> None:
    progress = Payload(attributes={"step": 1, "steps": 4})
    first, preview, last = developed(Development(), progress, painted(drawn()[None], preview=0), painted(drawn()[None]))
    assert first == Produced(progress)
    assert (preview.payload.attributes["preview"], preview.units, last.units) == (0, 0, 1)


def test_a_film_has_its_frames_in_order_and_its_rate() -> None:
    frames = ramp(20)
    wish = Development("mp4", frames_per_s=12)
    *progress, whole = developed(wish, painted(frames[:7], step=1), painted(frames[7:], step=2))
    assert [each.payload.attributes for each in progress] == [{"step": 1}, {"step": 2}]
    assert whole.payload.attributes == {"format": "mp4", "height": 48, "width": 64, "frames": 20}
    seen, rate = shown(data(whole))
    assert rate == 12
    assert [round(float(frame.mean())) for frame in seen] == pytest.approx([20 + 8 * index for index in range(20)], abs=2)
    assert data(whole).index(b"moov") < data(whole).index(b"mdat")


def test_odd_sizes_get_a_line_more() -> None:
    [_, whole] = developed(Development("mp4"), painted(ramp(2, 47, 63)))
    assert shown(data(whole))[0][0].shape == (48, 64, 3)


def test_a_films_preview_is_a_still() -> None:
    shot, _, whole = developed(Development("mp4"), painted(ramp(5), preview=1), painted(ramp(5)))
    assert (opened(data(shot)).format, shot.payload.attributes["preview"]) == ("JPEG", 1)
    assert np.asarray(opened(data(shot))).mean() == pytest.approx(20 + 8 * 2, abs=2)
    assert len(shown(data(whole))[0]) == 5


def test_frames_of_another_size_are_refused() -> None:
    state = MODEL.open(Development("mp4"))
    MODEL.run([(state, painted(ramp(2)))])
    [wrong] = MODEL.run([(state, painted(ramp(2, 32, 32)))])
    assert str(wrong) == "pixels: expected frames of (48, 64) (height, width) as before, got (32, 32)"
    assert shown(data(MODEL.flush(state)[0]))[0][0].shape == (48, 64, 3)


def test_a_long_film_of_short_reels_has_room_for_its_index() -> None:
    frame = ramp(1, 16, 16)
    assert len(shown(film(reel(frame, 16) * 700, 16))[0]) == 700


def test_a_large_film_leaves_in_pieces() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (8, 480, 640, 3), np.uint8)
    _, *pieces = developed(Development("mp4"), painted(noise))
    assert len(pieces) >= 2
    assert len(shown(b"".join(map(data, pieces)))[0]) == 8
