"""Deployment files as a whole: the default one, and one section for two records of the session."""

from pathlib import Path

import pytest

from engines.configuration import ConfigurationError
from realtime.deployment import DEFAULT_FILE, load, render, seats_file
from sessions.identity.tenants import TenantSettings

MINIMAL = """
pipeline: voice
workers: {mind: {stages: [thinker]}}
stages: {thinker: {model: vllm, weights: smollm2-135m-instruct}}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(text)
    return file


def test_the_default_runs_every_stage_and_its_first_voice_is_the_default() -> None:
    deployment = load()
    assert {stage for worker in deployment.graph.workers.values() for stage in worker.stages} == set(deployment.graph.stages)
    assert {stage.name for stage in deployment.graph.record().stages} == set(deployment.graph.stages)
    assert next(iter(deployment.graph.voices)) == "joe"


def test_what_is_printed_means_the_same_when_read_again(tmp_path: Path) -> None:
    more = "session: {maximum_sessions: 3, finished_silence_ms: 100}\nstore: {lease_s: 3}\ntenants: {acme: {sessions: 0}}"
    more += "\nadmission: {longest_queue: 0}\nseats: {voice: {seats: 6, measured: {turn_p95_ms: 900}, machine: mine}}"
    for file in (DEFAULT_FILE, written(tmp_path, MINIMAL + more)):
        deployment = load(file)
        again = tmp_path / "printed.yaml"
        again.write_text(render(deployment))
        assert load(again) == deployment


def test_a_folder_of_diffusers_is_printed_as_what_its_line_means(tmp_path: Path) -> None:
    (tmp_path / "painter").mkdir()
    (tmp_path / "painter" / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    deployment = load(written(tmp_path, "diffusers: ./painter"))
    again = tmp_path / "printed.yaml"
    again.write_text(render(deployment))
    assert "diffusers: " not in again.read_text()
    assert "model: diffusers" in again.read_text()
    assert load(again) == deployment


def test_session_and_server_settings_reach_their_records(tmp_path: Path) -> None:
    deployment = load(
        written(tmp_path, MINIMAL + "session: {maximum_sessions: 3, finished_silence_ms: 100}\nserver: {port: 9000}\n")
    )
    assert deployment.limits.maximum_sessions == 3
    assert deployment.voice.finished_silence_ms == 100
    assert deployment.server.port == 9000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("session: {maximum_seats: 3}", "mine.yaml: session.maximum_seats: expected one of maximum_sessions"),
        ("session: {maximum_sessions: many}", "mine.yaml: session.maximum_sessions: expected int, got 'many'"),
        ("session: {onset_threshold: 2}", "mine.yaml: session.onset_threshold: expected float <= 1.0, got 2"),
        ("server: {port: http}", "mine.yaml: server.port: expected int, got 'http'"),
        ("server: {port: 70000}", "mine.yaml: server.port: expected 0 to 65535, got 70000"),
        ("tenants: {acme: {weight: 0}}", "mine.yaml: tenants.acme.weight: expected float > 0.0, got 0"),
        ("tenants: {'a b': {}}", "mine.yaml: tenants: expected names of 1 to 64 letters, digits, - and _, got 'a b'"),
        ("admission: {longest_wait: 3}", "mine.yaml: admission.longest_wait: expected one of longest_queue, longest_wait_s, "),
        ("seats: {voice: {seats: 0}}", "mine.yaml: seats.voice.seats: expected int >= 1, got 0"),
        ("store: {lease_s: 0}", "mine.yaml: store.lease_s: expected float > 0.0, got 0"),
        (
            "store: {url: redis://h, lease_s: 40}",
            "mine.yaml: store.settle_s: expected more than 13.3333, a third of store.lease_s (40), as nodes may take so long "
            "to register again what they hold, got 10: set a longer settle_s or a shorter lease_s",
        ),
        ("store: {url: redis://h, settle_s: 1, lease_s: 3}", "mine.yaml: store.settle_s: expected more than 1, a third of "),
        ("servers: {}", "mine.yaml: servers: expected one of the sections pipeline, workers, stages, edges, "),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        load(written(tmp_path, f"{MINIMAL}\n{text}\n"))
    assert message in str(wrong.value)


@pytest.mark.parametrize(
    "store", ["{lease_s: 40}", "{url: redis://h, settle_s: 0}", "{url: redis://h, lease_s: 30, settle_s: 10.1}"]
)
def test_a_store_that_has_nothing_to_wait_for_or_waits_long_enough(tmp_path: Path, store: str) -> None:
    load(written(tmp_path, f"{MINIMAL}\nstore: {store}\n"))


def test_tenants_have_what_is_set(tmp_path: Path) -> None:
    deployment = load(written(tmp_path, MINIMAL + "tenants: {acme: {weight: 2, sessions: 5, priority: batch}, other: {}}"))
    assert deployment.tenants == {"acme": TenantSettings(weight=2, sessions=5, priority="batch"), "other": TenantSettings()}


@pytest.mark.parametrize(
    "password", ["hush-hush", "hush#hush", "hu[sh", "hu:sh", "hu@sh", "hu\u2100sh", "hu%2Fsh", "hu?sh", "hu/sh"]
)
def test_the_password_of_the_store_is_not_printed(tmp_path: Path, password: str) -> None:
    deployment = load(written(tmp_path, MINIMAL + f"store: {{url: 'rediss://user:{password}@redis.example:6379/1'}}"))
    assert deployment.store.is_shared
    assert "rediss://user:(hidden)@redis.example:6379/1" in render(deployment)
    assert password not in render(deployment)


@pytest.mark.parametrize("url", ["memory://", "redis://redis.example:6379/1", "redis+sentinel://a:1,b:2/main", "redis://user@h"])
def test_a_store_without_a_password_is_printed_as_it_is(tmp_path: Path, url: str) -> None:
    assert f"url: {url}" in render(load(written(tmp_path, MINIMAL + f"store: {{url: '{url}'}}"))).replace("'", "")


def test_what_was_calibrated_stands_beside_the_file_which_may_know_better(tmp_path: Path) -> None:
    file = written(tmp_path, MINIMAL)
    seats_file(file).write_text("seats: {voice: {seats: 6}}")
    assert load(file).seats["voice"].seats == 6
    assert load(written(tmp_path, MINIMAL + "seats: {voice: {seats: 3}}")).seats["voice"].seats == 3
    seats_file(file).write_text("chairs: {voice: {seats: 6}}")
    with pytest.raises(ConfigurationError, match=r"mine\.seats\.yaml: chairs: expected one of the sections seats"):
        load(written(tmp_path, MINIMAL))


@pytest.mark.parametrize(
    "line",
    [
        "session: {longest_session_s: .inf}",
        "session: {detached_grace_s: .inf}",
        "admission: {longest_wait_s: .inf}",
    ],
)
def test_a_time_that_never_ends_is_refused_here_and_not_when_a_session_opens(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigurationError, match="31536000"):
        load(written(tmp_path, f"{MINIMAL}{line}\n"))
