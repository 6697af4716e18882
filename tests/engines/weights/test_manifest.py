"""The manifest is complete, and its folder is found or its absence explained."""

import re
from pathlib import Path

import pytest

from engines.weights import WeightsMissing, directory
from engines.weights.cache import find_fault, folder, write_stamp
from engines.weights.convert import CONVERTERS
from engines.weights.manifest import MANIFEST, UnknownWeights, Weights, entry


@pytest.mark.parametrize("weights", MANIFEST, ids=lambda weights: weights.name)
def test_every_file_is_pinned(weights: Weights) -> None:
    assert weights.role
    assert weights.licence
    for file in weights.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.size_bytes > 0
        assert file.members
        assert not Path(file.name).is_absolute()
        assert all(re.fullmatch(r"\d+(\.\d+)+", member.package.version) for member in file.members)


@pytest.mark.parametrize("weights", MANIFEST, ids=lambda weights: weights.name)
def test_every_conversion_is_known(weights: Weights) -> None:
    if weights.conversion is not None:
        assert weights.conversion.converter in CONVERTERS
        assert weights.conversion.source in [file.name for file in weights.files]
        assert weights.conversion.results
        assert weights.conversion.source not in weights.results()


def test_names_are_not_doubled() -> None:
    assert len({weights.name for weights in MANIFEST}) == len(MANIFEST)
    for weights in MANIFEST:
        assert len(set(weights.results())) == len(weights.results())


def test_every_package_is_credited_in_notice() -> None:
    notice = (Path(__file__).parents[3] / "NOTICE").read_text()
    for weights in MANIFEST:
        for package in weights.packages():
            assert package.name in notice or package.name.rsplit("-", 1)[0] in notice


def test_missing_weights_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    with pytest.raises(WeightsMissing) as caught:
        directory("kokoro")
    sentence = str(caught.value)
    assert sentence == (
        f"the weights 'kokoro' are missing in {tmp_path}/weights/kokoro: "
        "run `deploy/serve`, or `.venv/bin/python -m engines.weights fetch kokoro`"
    )


def test_unknown_weights_name_the_known_ones() -> None:
    with pytest.raises(UnknownWeights, match=r"no weights are called 'whisper-large'; the manifest has silero-vad, "):
        directory("whisper-large")


def test_a_changed_manifest_makes_what_is_there_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    older = Weights(name="silero-vad", role="older", licence="MIT", files=())
    folder("silero-vad").mkdir(parents=True)
    write_stamp(older, folder("silero-vad"))
    assert find_fault(older) == ""
    assert find_fault(entry("silero-vad")) == "of another version"
