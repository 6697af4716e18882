"""https and wss from the server's own certificate: what is wrong is told first, a renewed one replaces it in place."""

import asyncio
import logging
import os
import pty
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from fakes.certificates import Pair, write_encrypted_key, write_pair
from fakes.edge import ServeEdge
from fakes.served import serving_echoes
from realtime import listener
from realtime.cli import main
from realtime.deployment import load
from realtime.tls import Certificate, TlsError


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return write_pair(tmp_path)


def trusting(pair: Pair) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=pair.cert)


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


async def answers(url: str, trust: ssl.SSLContext) -> bool:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/healthz", ssl=trust) as answer:
        return answer.status == 200


async def test_rest_and_sessions_over_tls(serve_edge: ServeEdge, pair: Pair) -> None:
    edge = await serve_edge(certificate=Certificate(*pair), trust=pair.cert)
    assert edge.url.startswith("https://")
    async with edge.http.get(f"{edge.url}/v1/models", headers={"Origin": edge.url}) as answer:
        assert answer.status == 200
    async with edge.socket(headers={"Origin": edge.url}) as client:
        await client.until("session.created")
    async with edge.http.get(f"{edge.url}/healthz", headers={"Origin": edge.url.replace("https", "http")}) as answer:
        assert answer.status == 403  # whoever stands between may have written that page


def spoken(url: str, trust: ssl.SSLContext) -> str | None:
    """The version that both sides agree on."""
    with socket.create_connection(("127.0.0.1", port_of(url))) as plain:
        try:
            with trust.wrap_socket(plain, server_hostname="localhost") as secured:
                return secured.version()
        except ssl.SSLError:
            return None


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
@pytest.mark.parametrize(
    ("newest", "version"),
    [(ssl.TLSVersion.TLSv1_1, None), (ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")],
)
async def test_old_versions_are_not_spoken(
    serve_edge: ServeEdge, pair: Pair, newest: ssl.TLSVersion, version: str | None
) -> None:
    edge = await serve_edge(certificate=Certificate(*pair), trust=pair.cert)
    trust = trusting(pair)
    trust.set_ciphers("DEFAULT@SECLEVEL=0")
    trust.minimum_version = ssl.TLSVersion.TLSv1
    trust.maximum_version = newest
    assert await asyncio.to_thread(spoken, edge.url, trust) == version


async def test_a_handshake_that_never_ends_is_ended(serve_edge: ServeEdge, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "TLS_STEP_S", 0.1)
    edge = await serve_edge(certificate=Certificate(*pair), trust=pair.cert)
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(edge.url))
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_a_served_process_speaks_tls_and_takes_a_renewed_certificate(tmp_path: Path, pair: Pair) -> None:
    serve = serving_echoes(tmp_path)
    async with serve("--tls-cert", str(pair.cert), "--tls-key", str(pair.key)) as served, aiohttp.ClientSession() as http:
        assert served.url.startswith("https://")
        await served.until(r"ready after")
        old = trusting(pair)
        async with http.ws_connect(f"{served.url}/v1/realtime", ssl=old) as client:
            assert (await client.receive_json())["type"] == "session.created"

            renewed = write_pair(tmp_path, "renewed")
            shutil.copy(renewed.cert, pair.cert)
            served.process.send_signal(signal.SIGHUP)  # the key is not yet that of the certificate
            await served.logs("the certificate stays as it was: server.tls_key: ")
            assert await answers(served.url, old)

            shutil.copy(renewed.key, pair.key)
            served.process.send_signal(signal.SIGHUP)
            await served.logs("the certificate has been read again")
            assert await answers(served.url, trusting(renewed))
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await answers(served.url, old)

            await client.send_json({"type": "nonsense"})
            assert (await client.receive_json())["type"] == "error"

        with pytest.raises(aiohttp.ClientError):
            await http.get(served.url.replace("https", "http"))
        assert (await served.stop(signal.SIGTERM))[0] == 0
    assert "Traceback" not in served.log.read_text()


def test_a_terminal_that_goes_away_ends_it(tmp_path: Path, pair: Pair) -> None:
    """It sends SIGHUP as well."""
    serving_echoes(tmp_path)
    command = (sys.executable, "-m", "realtime.cli", "serve", "--port", "0", "--deployment", str(tmp_path / "echoes.yaml"))
    ours, its = pty.openpty()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            ["setsid", "--ctty", *command, "--tls-cert", str(pair.cert), "--tls-key", str(pair.key)],
            stdin=its,
            stdout=its,
            stderr=log,
            env=os.environ | {"PYTHONPATH": "tests"},
        )
    os.close(its)
    try:
        said = b""
        while b"ready after" not in said:
            said += os.read(ours, 4096)
        os.close(ours)
        assert process.wait(20) == 0
    finally:
        process.kill()
    assert "Traceback" not in (tmp_path / "log").read_text()


async def talk(url: str, folder: Path, *options: str, **environment: str) -> tuple[int | None, str]:
    """As a process of its own: exit code and what it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "realtime.cli", "talk", "--text", "Hello", "--url", url),
        *("--no-play", "--out", str(folder / "answer.wav"), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | environment,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_talk_trusts_what_it_is_told_to(serve_edge: ServeEdge, pair: Pair, tmp_path: Path) -> None:
    edge = await serve_edge(certificate=Certificate(*pair), trust=pair.cert)
    code, said = await talk(edge.url, tmp_path)
    assert code == 1
    fault = f"the server at {edge.url} is not trusted (self-signed certificate); name its certificate with --cacert"
    assert said == f"antiphon talk: {fault}\n"
    assert (await talk(edge.url, tmp_path, "--cacert", str(pair.cert)))[0] == 0
    assert (await talk(edge.url, tmp_path, SSL_CERT_FILE=str(pair.cert)))[0] == 0


@pytest.mark.parametrize(("file", "why"), [("nosuch.pem", "it cannot be read: No such file"), ("junk", "expected a certificate")])
def test_talk_says_what_is_wrong_with_what_it_shall_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, why: str
) -> None:
    (tmp_path / "junk").write_text("junk")
    assert main(["talk", "--text", "Hello", "--cacert", str(tmp_path / file)]) == 1
    assert f"antiphon talk: --cacert: {tmp_path / file}: {why}" in capsys.readouterr().err


class Files:
    """Names of files with something wrong in them, beside a good pair."""

    def __init__(self, folder: Path) -> None:
        self.pair = write_pair(folder)
        self.folder = folder
        (folder / "junk").write_bytes(b"\x30\x82\xff\x00 no PEM")
        (folder / "empty").write_text("")
        (folder / "folder").mkdir()
        (folder / "half.pem").write_text(self.pair.cert.read_text()[:200])
        write_encrypted_key(folder / "encrypted.key")
        write_pair(folder, "other")


@pytest.mark.parametrize(
    ("cert", "key", "fault"),
    [
        ("nosuch.pem", "own.key", "server.tls_cert: {}: there is no such file"),
        ("folder", "own.key", "server.tls_cert: {}: it cannot be read: Is a directory"),
        ("junk", "own.key", "server.tls_cert: {}: expected a certificate in PEM, got something else"),
        ("empty", "own.key", "server.tls_cert: {}: expected a certificate in PEM, got something else"),
        ("half.pem", "own.key", "server.tls_cert: {}: expected a certificate in PEM, got something else"),
        ("own.key", "own.key", "server.tls_cert: {}: expected a certificate in PEM, got something else"),
        ("own.pem", "nosuch.key", "server.tls_key: {}: there is no such file"),
        ("own.pem", "folder", "server.tls_key: {}: it cannot be read: Is a directory"),
        ("own.pem", "junk", "server.tls_key: {}: expected a private key in PEM, got something else"),
        ("own.pem", "empty", "server.tls_key: {}: expected a private key in PEM, got something else"),
        ("own.pem", "own.pem", "server.tls_key: {}: expected a private key in PEM, got something else"),
        ("own.pem", "other.key", "server.tls_key: {}: it is not the key of the certificate in "),
        ("own.pem", "encrypted.key", "server.tls_key: {}: the key is encrypted; "),
    ],
)
def test_what_is_wrong_is_told_with_setting_and_file(tmp_path: Path, cert: str, key: str, fault: str) -> None:
    folder = Files(tmp_path).folder
    named = folder / (cert if "tls_cert" in fault else key)
    with pytest.raises(TlsError) as wrong:
        Certificate(folder / cert, folder / key)
    assert str(wrong.value).startswith(fault.format(named))


def test_one_file_may_hold_both(pair: Pair) -> None:
    pair.cert.write_text(pair.key.read_text() + pair.cert.read_text())
    Certificate(pair.cert, pair.cert)


@pytest.mark.parametrize(("age_days", "said"), [(40, "has expired on "), (-2, "is valid from "), (1, "")])
def test_a_certificate_out_of_date_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, age_days: int, said: str
) -> None:
    with caplog.at_level(logging.WARNING):
        Certificate(*write_pair(tmp_path, age_days=age_days))
    assert said in caplog.text if said else caplog.text == ""


def test_nothing_starts_with_a_wrong_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "no.pem"
    assert main(["serve", "--port", "0", "--tls-cert", str(missing), "--tls-key", str(missing)]) == 1
    assert capsys.readouterr().err.endswith(f"antiphon: server.tls_cert: {missing}: there is no such file\n")


@pytest.mark.parametrize(("given", "other"), [("tls_cert", "tls_key"), ("tls_key", "tls_cert")])
def test_one_without_the_other_is_refused(capsys: pytest.CaptureFixture[str], given: str, other: str) -> None:
    assert main(["config", f"--{given.replace('_', '-')}", "x.pem"]) == 1
    said = f"antiphon: command line: server.{other}: expected a file, as {given} has one, got ''\n"
    assert capsys.readouterr().err == said


def test_files_count_from_the_deployments_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And are not followed: a renewed certificate is often a new target of the same link."""
    serving_echoes(tmp_path)
    file = tmp_path / "echoes.yaml"
    file.write_text(f"{file.read_text()}\nserver: {{tls_cert: live/cert.pem, tls_key: ~/key.pem}}\n")
    (tmp_path / "live").symlink_to(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    server = load(file).server
    assert (server.tls_cert, server.tls_key) == (f"{tmp_path}/live/cert.pem", "/home/me/key.pem")


def test_options_count_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config", "--tls-cert", "c.pem", "--tls-key", "k.pem"]) == 0
    assert f"tls_cert: {tmp_path}/c.pem\n" in capsys.readouterr().out
