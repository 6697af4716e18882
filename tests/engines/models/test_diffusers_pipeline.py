from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engines.models import InvalidInput
from engines.models.diffusers_pipeline import DiffusersPipeline
from engines.models.diffusion import PREVIEW
from engines.parameters import Picture, Speech
from engines.payloads import Array, Payload
from fakes.ready_painters import CAT, SMALL, folders, mean_error, painted, pixels, ready, to_the_end


def small_film(sampler: str) -> Picture:
    return Picture(width=32, height=32, frames=5, steps=2, sampler=sampler)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return folders(tmp_path_factory)


@pytest.fixture(scope="module")
def painter(folder: Callable[[str], Path]) -> DiffusersPipeline:
    return ready(folder("picture"))


@pytest.fixture(scope="module")
def film_maker(folder: Callable[[str], Path]) -> DiffusersPipeline:
    return ready(folder("film"))


@pytest.fixture(scope="module")
def mender(folder: Callable[[str], Path]) -> DiffusersPipeline:
    return ready(folder("inpaint"))


def upload(shape: tuple[int, ...], kind: type[np.generic] = np.uint8) -> Array:
    return Array.of(np.random.default_rng(0).integers(0, 256, shape).astype(kind))


def test_pictures_and_films(painter: DiffusersPipeline, film_maker: DiffusersPipeline):
    assert (painter.units, painted(painter, SMALL).shape) == ("pictures", (1, 32, 32, 3))
    assert (film_maker.units, painted(film_maker, Picture(width=32, height=32, steps=2, frames=5)).shape) == (
        "frames",
        (5, 32, 32, 3),
    )


def test_a_given_picture_is_changed_only_under_its_mask(mender: DiffusersPipeline):
    arrays = {"image": upload((32, 32, 3)), "mask": Array.of(np.zeros((32, 32), np.uint8))}
    kept = painted(mender, Picture(steps=3), Payload("a cat", arrays))
    repainted = painted(
        mender, Picture(steps=3), Payload("a cat", {**arrays, "mask": Array.of(np.full((32, 32), 255, np.uint8))})
    )
    assert kept.shape == (1, 32, 32, 3)
    assert mean_error(kept, repainted) > 0


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Picture(steps=0), "steps: expected 1 to 150, got 0"),
        (Picture(steps=1_000_000), "steps: expected 1 to 150, got 1000000"),
        (Picture(width=33, height=32), "width: expected a multiple of 2 pixels, got 33"),
        (Picture(width=-2), "width: expected a multiple of 2 pixels, got -2"),
        (Picture(width=4096, height=4096), "width, height: expected at most 4194304 pixels, got 4096 × 4096 = 16777216"),
        (Picture(height=10**9), "height: expected at most 4194304 pixels in all, got 1000000000 in a row"),
        (Picture(guidance=float("nan")), "guidance: expected 0 to 1000, got nan"),
        (Picture(guidance=float("inf")), "guidance: expected 0 to 1000, got inf"),
        (Picture(seed=-1), "seed: expected 0 to 9223372036854775807, got -1"),
        (Picture(frames=5), "frames: expected 1 from a pipeline that makes pictures, got 5"),
        (Picture(negative_prompt="a" * 1_000_000), "negative_prompt: expected at most 8000 characters, got 1000000"),
        (Picture(previews=9), "previews: expected 0 to 8, got 9"),
        (Picture(sampler="none"), "sampler: expected one of ddim, ddpm, "),
        (Speech(voice="joe"), "parameters: expected picture, got Speech"),
    ],
)
def test_wrong_parameters_are_refused_by_name(painter: DiffusersPipeline, wanted: Picture | Speech, complaint: str):
    with pytest.raises(InvalidInput) as refused:
        painter.open(wanted)
    assert str(refused.value).startswith(complaint)


@pytest.mark.parametrize(("about", "made"), [(2, 5), (5, 5), (6, 5), (8, 9), (64, 65), (256, 257)])
def test_about_so_many_frames_are_as_many_as_the_pipeline_can_make(film_maker: DiffusersPipeline, about: int, made: int):
    assert film_maker.open(Picture(frames=about, about_frames=True)).wanted == Picture(frames=made)


def test_about_more_frames_than_allowed_are_refused(film_maker: DiffusersPipeline):
    with pytest.raises(InvalidInput, match="frames: expected 1 to 257, got 261"):
        film_maker.open(Picture(frames=260, about_frames=True))


def test_frames_that_the_pipeline_would_round_are_refused(film_maker: DiffusersPipeline):
    with pytest.raises(InvalidInput, match="frames: expected one more than a multiple of 4, got 6"):
        film_maker.open(Picture(frames=6))


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (Payload("a" * 1_000_000), "prompt: expected at most 8000 characters, got 1000000"),
        (Payload("a cat"), "image, mask: expected one, got none"),
        (Payload("a cat", {"mask": upload((32, 32))}), "mask: expected an image and a mask of its size, got only a mask"),
        (
            Payload("a cat", {"image": upload((32, 32, 3), np.float32)}),
            "image: expected uint8 of shape [height, width, 3], got float32",
        ),
        (
            Payload("a cat", {"image": upload((32, 32))}),
            "image: expected uint8 of shape [height, width, 3], got uint8 of shape [32, 32]",
        ),
        (Payload("a cat", {"image": upload((31, 32, 3))}), "image height: expected a multiple of 2 pixels, got 31"),
        (Payload("a cat", {"image": upload((0, 32, 3))}), "image height: expected a multiple of 2 pixels, got 0"),
        (Payload("a cat", {"sketch": upload((32, 32, 3))}), "sketch: expected no more than one image and one mask, got another"),
    ],
)
def test_wrong_input_is_refused_by_name(mender: DiffusersPipeline, payload: Payload, complaint: str):
    with pytest.raises(InvalidInput) as refused:
        mender.begin(mender.open(Picture(steps=2)), payload)
    assert str(refused.value).startswith(complaint)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # diffusers
@pytest.mark.parametrize(
    ("maker", "wanted", "complaint"),
    [
        ("again", Picture(steps=5, strength=0.1), "strength: expected so much that of 5 steps one is left, got 0.1"),
        ("again", Picture(steps=1), "steps: expected so many that at the strength of 0.8 one is left, got 1"),
        ("inpaint", Picture(steps=5, strength=0.1), "strength: expected so much that of 5 steps one is left, got 0.1"),
        ("film", small_film("ddim"), "sampler: expected one that this pipeline can use for 2 steps, got 'ddim' ("),
        ("film", small_film("euler"), "sampler: expected one that this pipeline can use for 2 steps, got 'euler' ("),
        ("film", small_film("pndm"), "sampler: expected one that this pipeline can use for 2 steps, got 'pndm' ("),
    ],
)
def test_what_only_the_pipeline_finds_wrong_is_the_fault_of_a_field(
    folder: Callable[[str], Path], maker: str, wanted: Picture, complaint: str
):
    model = DiffusersPipeline.load(folder(maker), {})
    arrays: dict[str, Array] = {} if maker == "film" else {"image": upload((32, 32, 3))}
    if maker == "inpaint":
        arrays["mask"] = upload((32, 32))
    job = model.begin(model.open(wanted), Payload("a cat", arrays))
    with pytest.raises(InvalidInput) as refused:
        to_the_end(model, job)
    assert str(refused.value).startswith(complaint)
    model.abandon(job)


def test_a_pipeline_without_pictures_refuses_them(film_maker: DiffusersPipeline):
    with pytest.raises(InvalidInput, match="image: expected none, since this pipeline takes none"):
        film_maker.begin(film_maker.open(SMALL), Payload("a cat", {"image": upload((32, 32, 3))}))
    with pytest.raises(InvalidInput, match="strength: expected none where no picture is given, or none can be"):
        film_maker.open(Picture(strength=0.5))


def test_a_painter_of_prompts_edits_with_the_librarys_other_pipelines(painter: DiffusersPipeline):
    given, mask = upload((32, 48, 3)), Array.of(np.zeros((32, 48), np.uint8))
    wanted = Picture(steps=8, strength=0.25)
    near = painted(painter, wanted, Payload("a cat", {"image": given}))
    far = painted(painter, Picture(steps=8, strength=1.0), Payload("a cat", {"image": given}))
    kept = painted(painter, wanted, Payload("a cat", {"image": given, "mask": mask}))
    assert near.shape == far.shape == kept.shape == (1, 32, 48, 3)
    assert len({picture.tobytes() for picture in (near, far, kept)}) == 3


@pytest.mark.parametrize(
    ("wanted", "arrays", "complaint"),
    [
        (Picture(strength=0.5), {}, "strength: expected none where no picture is given, or none can be, got 0.5"),
        (Picture(), {"mask": upload((32, 32))}, "mask: expected an image and a mask of its size, got only a mask"),
        (Picture(width=64, height=64), {"image": upload((32, 32, 3))}, "width, height: expected those of the image, 32 × 32"),
        (Picture(previews=1), {"image": upload((32, 32, 3)), "mask": upload((32, 32))}, "previews: expected 0, since what"),
    ],
)
def test_wrong_edits_are_refused_by_name(painter: DiffusersPipeline, wanted: Picture, arrays: dict[str, Array], complaint: str):
    with pytest.raises(InvalidInput) as refused:
        painter.begin(painter.open(wanted), Payload("a cat", arrays))
    assert str(refused.value).startswith(complaint)


def test_networks_that_the_librarys_editor_does_not_suit_edit_nothing(mender: DiffusersPipeline):
    """Those of inpainting want more channels than an editor without a mask gives them."""
    with pytest.raises(InvalidInput, match="mask: expected one, got none"):
        mender.begin(mender.open(Picture(steps=2)), Payload("a cat", {"image": upload((32, 32, 3))}))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # diffusers
@pytest.mark.parametrize("sampler", ["ddim", "euler", "euler_ancestral", "heun", "dpm++", "unipc", "pndm"])
def test_samplers_have_their_own_result_and_show_previews_and_take_updates(painter: DiffusersPipeline, sampler: str):
    wanted = Picture(width=32, height=32, steps=6, sampler=sampler, previews=2)
    plain = painted(painter, Picture(width=32, height=32, steps=6, sampler=sampler))
    job = painter.begin(painter.open(wanted), CAT)
    produced = to_the_end(painter, job)
    assert [chunk.payload.attributes.get(PREVIEW) for chunk in produced] == [0, 1, None]
    np.testing.assert_array_equal(pixels(produced[-1]), plain)
    job = painter.begin(painter.open(wanted), CAT)
    while job.step < 3:
        painter.advance([job])
    painter.update(job, CAT)
    assert mean_error(pixels(to_the_end(painter, job)[-1]), plain) < 0.2


def test_a_later_preview_is_nearer_to_the_end(painter: DiffusersPipeline):
    produced = to_the_end(painter, painter.begin(painter.open(Picture(width=32, height=32, steps=8, previews=3)), CAT))
    *previews, end = [pixels(chunk) for chunk in produced]
    errors = [mean_error(preview, end) for preview in previews]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > errors[-1]


def test_a_new_prompt_takes_effect_and_costs_no_step(painter: DiffusersPipeline):
    strong = Picture(width=32, height=32, steps=6, guidance=50.0)
    first, second = painted(painter, strong), painted(painter, strong, Payload("zzzz"))
    job = painter.begin(painter.open(strong), CAT)
    while job.step < 2:
        painter.advance([job])
    painter.update(job, Payload("zzzz"))
    assert job.step == 2
    changed = pixels(to_the_end(painter, job)[-1])
    assert (job.step, job.steps) == (6, 6)
    assert mean_error(changed, first) > 0
    assert mean_error(changed, second) > 0
    early = painter.begin(painter.open(strong), CAT)
    painter.update(early, Payload("zzzz"))
    np.testing.assert_array_equal(pixels(to_the_end(painter, early)[-1]), second)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # diffusers
@pytest.mark.parametrize("sampler", ["", "ddpm", "euler_ancestral"])
def test_updates_that_change_nothing_change_nothing_however_many(painter: DiffusersPipeline, sampler: str):
    wanted = Picture(width=32, height=32, steps=6, sampler=sampler)
    job = painter.begin(painter.open(wanted), CAT)
    for _ in range(6):  # the prompt, and five steps
        painter.advance([job])
        before = job.step
        for _ in range(2):
            painter.update(job, CAT)
        assert job.step == before
    np.testing.assert_array_equal(pixels(to_the_end(painter, job)[-1]), painted(painter, wanted))


@pytest.mark.parametrize("payload", [Payload(), Payload("a" * 8_001), Payload("a", {"image": upload((32, 32, 3))})])
def test_a_refused_update_leaves_the_job_as_it_was(painter: DiffusersPipeline, payload: Payload):
    job = painter.begin(painter.open(SMALL), CAT)
    painter.advance([job])
    with pytest.raises(InvalidInput):
        painter.update(job, payload)
    np.testing.assert_array_equal(pixels(to_the_end(painter, job)[-1]), painted(painter, SMALL))


def test_an_update_after_the_last_step_is_refused(painter: DiffusersPipeline):
    job = painter.begin(painter.open(SMALL), CAT)
    while job.step < 4:
        painter.advance([job])
    with pytest.raises(InvalidInput, match="update: expected before the last step, got after step 4 of 4"):
        painter.update(job, Payload("a dog"))


def test_each_job_of_a_request_has_noise_of_its_own(painter: DiffusersPipeline):
    state = painter.open(SMALL)
    first, second = (pixels(to_the_end(painter, painter.begin(state, CAT))[-1]) for _ in range(2))
    assert mean_error(first, second) > 0
    np.testing.assert_array_equal(second, painted(painter, Picture(width=32, height=32, steps=4, guidance=4.0, seed=1)))


def test_a_long_film_comes_in_pieces_that_can_travel(film_maker: DiffusersPipeline, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engines.models.diffusers_pipeline.PIECE_BYTES", 2 * 32 * 32 * 3)
    job = film_maker.begin(film_maker.open(Picture(width=32, height=32, steps=1, frames=5)), CAT)
    assert [chunk.units for chunk in to_the_end(film_maker, job)] == [2, 2, 1]
