"""What a person does wrong is told in one sentence, with exit code 1 and no traceback."""

import os
import socket
import subprocess
import sys
from importlib.metadata import version
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
    assert message == (
        f"antiphon: cannot listen on 127.0.0.1:{port}: another program listens there; stop that, or choose another --port\n"
    )


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
    assert said == "antiphon: command line: server.port: expected 0 to 65535, got 70000\n"


def test_models_lists_the_weights_and_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    assert main(["models"]) == 1
    said = capsys.readouterr().out
    assert "whisper-tiny-en" in said
    assert "whisper-tiny-en          missing " in said


def test_an_address_that_cannot_be_had_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "127.0.0.300", "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert said.count("127.0.0.300") == 1


def test_an_unknown_option_shows_the_options_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--prot", "1"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("usage: antiphon serve")
    assert said.endswith("there is no option --prot\n")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"antiphon {version('antiphon')}\n"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("nosuch.yaml", "nosuch.yaml: there is no such file"),
        (".", ".: it cannot be read: Is a directory"),
    ],
)
def test_a_deployment_that_is_no_file(file: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--deployment", file]) == 1
    assert capsys.readouterr().err == f"antiphon: {said}\n"


def test_a_wrong_option_of_a_model_stops_it_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "pipeline: voice\nworkers: {mind: {stages: [thinker]}}\n"
        f"stages: {{thinker: {{model: vllm, directory: {tmp_path}, options: {{temprature: 3}}}}}}\n"
    )
    message = one_sentence(antiphon("serve", "--port", "0", "--deployment", str(file)))
    assert "mine.yaml: stages.thinker.options.temprature: expected one of max_model_len, " in message


def test_a_folder_without_a_model_stops_it_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("pipeline: voice\nworkers: {mind: {stages: [thinker]}}\nstages: {thinker: {model: vllm, directory: .}}\n")
    message = one_sentence(antiphon("serve", "--port", "0", "--deployment", str(file)))
    assert f"stages.thinker.directory: expected a folder of the model vllm, and {tmp_path} has no config.json" in message


def test_config_prints_the_options_that_the_models_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    said = capsys.readouterr().out
    assert "max_model_len: 2048" in said
    assert "log_format: text" in said
