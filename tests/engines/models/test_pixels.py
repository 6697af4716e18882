"""Uploaded files become pixels, or an error that names the field."""

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from engines.models import InvalidInput
from engines.models.pixels import PixelsModel
from engines.payloads import Array, Payload
from fakes.uploads import drawn, file, png_bomb, webp_bomb

SEEN = drawn(16, 16)


def outcome(files: dict[str, bytes], **options: object) -> dict[str, NDArray[np.generic]] | InvalidInput:
    arrays = {field: Array.of(np.frombuffer(data, np.uint8)) for field, data in files.items()}
    [result] = PixelsModel.load(Path(), options).run([(None, Payload("a cat", arrays, {"n": 1}))])
    if isinstance(result, InvalidInput):
        return result
    [produced] = result
    assert (produced.payload.text, produced.payload.attributes) == ("a cat", {"n": 1})
    return {field: array.numpy() for field, array in produced.payload.arrays.items()}


def decoded(files: dict[str, bytes], **options: object) -> dict[str, NDArray[np.generic]]:
    pixels = outcome(files, **options)
    assert not isinstance(pixels, InvalidInput), pixels
    return pixels


def fault(files: dict[str, bytes], **options: object) -> str:
    wrong = outcome(files, **options)
    assert isinstance(wrong, InvalidInput), wrong
    return str(wrong)


def test_the_pixels_are_those_of_the_file() -> None:
    pixels = decoded({"image": file(SEEN), "image[1]": file(SEEN, "WEBP", lossless=True)})
    np.testing.assert_array_equal(pixels["image"], SEEN)
    np.testing.assert_array_equal(pixels["image[1]"], SEEN)
    assert np.abs(decoded({"image": file(SEEN // 64 * 0 + 90, "JPEG")})["image"].astype(int) - 90).max() <= 2


def test_a_photograph_is_turned_upright() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    np.testing.assert_array_equal(decoded({"image": file(SEEN, exif=turned)})["image"], np.rot90(SEEN, -1))


def test_what_is_transparent_is_white() -> None:
    alpha = np.full((16, 16, 1), 255, np.uint8)
    alpha[:6] = 0
    pixels = decoded({"image": file(np.concatenate([SEEN, alpha], axis=2))})["image"]
    assert (pixels[:6] == 255).all()
    np.testing.assert_array_equal(pixels[6:], SEEN[6:])


def test_grey_of_sixteen_bits_keeps_its_upper_half() -> None:
    grey = np.array([[0, 257, 32_896, 65_535]], np.uint16)
    np.testing.assert_array_equal(decoded({"image": file(grey)}, side_unit=1)["image"][0, :, 0], [0, 1, 128, 255])


def test_the_mask_is_where_it_is_transparent_or_white() -> None:
    alpha = np.zeros((16, 16, 4), np.uint8)
    alpha[:, :8, 3] = 255
    white = np.zeros((16, 16), np.uint8)
    white[:, 8:] = 255
    for mask in (alpha, white):
        np.testing.assert_array_equal(decoded({"image": file(SEEN), "mask": file(mask)})["mask"], white)


def test_large_ones_become_smaller_with_their_mask() -> None:
    large = np.full((400, 200, 3), 7, np.uint8)
    pixels = decoded({"image": file(large), "mask": file(large[:, :, 0])}, kept_pixels=20_000)
    assert {array.shape[:2] for array in pixels.values()} == {(192, 96)}
    assert (pixels["image"] == 7).all()
    two = decoded({"image": file(large), "image[1]": file(large)}, kept_pixels=20_000)
    assert all(array.shape[0] * array.shape[1] <= 10_000 for array in two.values())


@pytest.mark.parametrize(("size", "shape"), [((37, 50), (32, 48)), ((3, 17), (16, 16)), ((48, 48), (48, 48))])
def test_sides_become_multiples(size: tuple[int, int], shape: tuple[int, int]) -> None:
    assert decoded({"image": file(drawn(*size)), "mask": file(drawn(*size))})["mask"].shape == shape


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"image": b""}, "image: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image[1]": b"<svg>"}, "image[1]: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image": file(SEEN, "GIF")}, "image: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image": file(SEEN)[:-40]}, "image: expected a picture as PNG, JPEG or WebP, got a broken one"),
        ({"image": file(SEEN, "JPEG")[:-200]}, "image: expected a picture as PNG, JPEG or WebP, got a broken one"),
        ({"mask": file(SEEN)}, "image: expected the picture that the mask belongs to, got none"),
        ({"image": file(SEEN), "mask": file(SEEN[1:])}, "mask: expected the size of the picture, 16 x 16, got 16 x 15"),
    ],
)
def test_what_is_wrong_is_named(files: dict[str, bytes], said: str) -> None:
    assert fault(files).startswith(said)


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_what_moves_is_refused(format: str) -> None:
    moving = file(Image.fromarray(SEEN), format, save_all=True, append_images=[Image.fromarray(255 - SEEN)])
    assert fault({"image": moving}).endswith("with one frame, got 2 frames")


def test_limits_are_told_with_their_numbers() -> None:
    assert fault({"image": file(SEEN)}, max_bytes=100).startswith("image: expected a file of at most 100 bytes, got ")
    assert fault({"image": file(SEEN)}, max_pixels=255) == "image: expected a picture of at most 255 pixels, got 16 x 16"


@pytest.mark.parametrize(
    "bomb", [png_bomb(8_000, 8_000), png_bomb(12_000, 12_000), png_bomb(2**31 - 1, 2**31 - 1), webp_bomb()], ids=len
)
def test_bombs_are_refused_before_they_go_off(bomb: bytes) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "image: expected a picture of at most 50000000 pixels, got" in fault({"image": bomb})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


@given(place=st.floats(0, 1), byte=st.integers(0, 255), format=st.sampled_from(("PNG", "JPEG", "WEBP")), cut=st.floats(0, 1))
def test_damaged_files_are_pixels_or_an_error(place: float, byte: int, format: str, cut: float) -> None:
    data = bytearray(file(SEEN, format))
    data[int(place * (len(data) - 1))] = byte
    result = outcome({"image": bytes(data[: int(cut * len(data)) + 1 if cut < 0.5 else None])})
    if isinstance(result, InvalidInput):
        assert str(result).startswith("image: expected ")
    else:
        assert result["image"].ndim == 3
