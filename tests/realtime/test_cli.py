"""What a person does wrong is told in one sentence, with exit code 1 and no traceback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from realtime.cli import main
from realtime.deployment import DEFAULT_FILE


def antiphon(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "realtime.cli", *arguments]
    known = {name: value for name, value in os.environ.items() if name != "ANTIPHON_API_KEY"}
    return subprocess.run(command, capture_output=True, text=True, env=known | environment, timeout=50, check=False)


def one_sentence(result: "subprocess.CompletedProcess[str]") -> str:
    assert result.returncode == 1
    assert result.stderr.startswith("antiphon: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = one_sentence(antiphon("serve", "--port", str(port)))
    assert f"127.0.0.1:{port}" in message
    assert "--port" in message


def test_missing_weights(tmp_path: Path) -> None:
    message = one_sentence(antiphon("serve", "--port", "0", ANTIPHON_CACHE=str(tmp_path)))
    assert "are missing" in message
    assert "deploy/serve" in message


def test_a_host_open_to_others_without_a_key() -> None:
    assert "ANTIPHON_API_KEY" in one_sentence(antiphon("serve", "--host", "0.0.0.0", "--port", "0"))


@pytest.mark.parametrize(
    ("content", "named"),
    [("serverr: {}", "serverr"), ("server: {port: 99999}", "server.port"), ("server: [", "YAML")],
)
def test_a_wrong_deployment_names_file_key_expected_and_got(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, named: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"{DEFAULT_FILE.read_text()}\n{content}")
    assert main(["config", "--deployment", str(file)]) == 1
    said = capsys.readouterr().err
    assert all(part in said for part in (str(file), named, "expected", "got"))


def test_config_prints_the_effective_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--port", "9000", "--allow-origin", "https://a.example"]) == 0
    said = capsys.readouterr().out
    assert "port: 9000" in said
    assert "- https://a.example" in said
    assert "max_append_bytes: 15728640" in said


def test_a_wrong_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--port", "70000"]) == 1
    said = capsys.readouterr().err
    assert "port" in said
    assert "70000" in said


def test_models_lists_the_weights_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    assert main(["models"]) == 1
    said = capsys.readouterr().out
    assert "whisper-tiny-en" in said
    assert "are missing" in said
