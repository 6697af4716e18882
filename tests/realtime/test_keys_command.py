"""`antiphon keys`, and the server that knows what it makes."""

import asyncio
import re
from pathlib import Path

import pytest

from fakes.edge import Edge, ServeEdge
from fakes.redis_server import running_redis
from realtime.cli import main
from realtime.commands.keys import UNITS_S, duration_s
from realtime.deployment import DEFAULT_FILE, load
from realtime.exposure import ExposureRefused
from realtime.keys import KeysWrong, check_keys, credentials_of
from sessions.identity.credentials import Credentials
from sessions.identity.principal import Scope
from sessions.store.address import open_store

KEY = re.compile(r"ak_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A deployment whose keys are beside it."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"{DEFAULT_FILE.read_text()}\nserver: {{keys_file: keys.json}}")
    return file


def keys(file: Path, *arguments: str) -> int:
    return main(["keys", "--deployment", str(file), *arguments])


def made(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The key, which is all that the standard output has."""
    assert keys(file, "create", *options) == 0
    said = capsys.readouterr()
    key = said.out.strip()
    assert KEY.fullmatch(key)
    assert key not in said.err
    return key


def opened_by(file: Path) -> Credentials:
    return credentials_of(load(file), None, None)


async def test_a_key_that_is_made_opens_the_server(file: Path, capsys: pytest.CaptureFixture[str], serve_edge: ServeEdge) -> None:
    edge = await serve_edge(credentials=opened_by(file))
    assert await models_status(edge, None) == 200
    options = "--tenant", "acme", "--scope", "rest", "--expires", "1h"
    key = await asyncio.to_thread(made, file, capsys, *options)
    edge = await serve_edge(credentials=opened_by(file))
    assert await models_status(edge, key) == 200
    assert await models_status(edge, None) == 401
    await asyncio.to_thread(keys, file, "revoke", key[3:15])
    edge = await serve_edge(credentials=opened_by(file))
    assert await models_status(edge, key) == 200  # there are none again: the server is open, as it was


async def models_status(edge: Edge, key: str | None) -> int:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with edge.http.get(f"{edge.url}/v1/models", headers=headers) as answer:
        return answer.status


async def test_a_key_has_the_rights_that_were_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--tenant", "acme", "--scope", "admin", "--kind", "voice", "--model", "a", "--model", "b"
    more = "--origin", "https://a.example", "--longest-session", "15m"
    key = await asyncio.to_thread(made, file, capsys, *options, *more)
    principal = await opened_by(file).principal(key)
    assert (principal.tenant, principal.scopes, principal.kinds) == ("acme", {Scope.ADMIN}, {"voice"})
    assert (principal.models, principal.origins) == ({"a", "b"}, ("https://a.example",))
    assert (principal.longest_session_s, principal.expires_at) == (900, None)


def test_a_list_has_everything_but_the_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keys(file, "list") == 0
    assert capsys.readouterr().err == f"there are no keys in {file.parent / 'keys.json'}\n"
    key = made(file, capsys, "--tenant", "acme", "--expires", "30d", "--model", "a")
    assert keys(file, "list") == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[1].startswith(f"{key[3:15]}  acme  ")
    assert "rest, sessions; models a; made " in shown
    assert key[16:] not in shown + (file.parent / "keys.json").read_text()


@pytest.mark.parametrize("is_first", [True, False])
def test_whose_keys_is_said_before_the_order_or_after_it_and_heard(
    file: Path, capsys: pytest.CaptureFixture[str], is_first: bool
) -> None:
    other, order = ["--deployment", str(file)], ["create", "--tenant", "acme"]
    assert main(["keys", *((*other, *order) if is_first else (*order, *other))]) == 0
    assert f"of tenant acme, kept in {file.parent / 'keys.json'}; it is shown" in capsys.readouterr().err


async def test_where_several_nodes_share_a_store_a_key_is_kept_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    async with running_redis(tmp_path / "redis", "--requirepass", "s3cret") as server:
        url = server.url.replace("//", "//:s3cret@")
        file.write_text(f"{DEFAULT_FILE.read_text()}\nstore: {{url: '{url}'}}")
        await asyncio.to_thread(made, file, capsys, "--tenant", "acme")
        assert await asyncio.to_thread(keys, file, "rotate", "0" * 12) == 1
        async with open_store(url, 0.0) as store:
            (key_id,) = (await store.shelf("api_keys")).keys()
        assert await asyncio.to_thread(keys, file, "rotate", key_id) == 0
    said = capsys.readouterr().err
    assert f"in place of {key_id}, kept in redis://:(hidden)@127.0.0.1:{server.port}/0; it is" in said
    assert "s3cret" not in said


def test_a_list_is_a_table_however_long_the_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for tenant in ("a", "a-tenant-with-a-rather-long-name"):
        made(file, capsys, "--tenant", tenant)
    assert keys(file, "list") == 0
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["KEY", "TENANT", "ALLOWS"]
    assert {row.index("rest, sessions; ") for row in rows} == {heading.index("ALLOWS")}


def test_the_scopes_are_named_as_they_are_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        keys(file, "create", "--tenant", "acme", "--scope", "all")
    assert "(choose from 'sessions', 'rest', 'admin')" in capsys.readouterr().err


async def test_a_rotated_key_and_its_successor(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = await asyncio.to_thread(made, file, capsys, "--tenant", "acme")
    assert await asyncio.to_thread(keys, file, "rotate", old[3:15], "--grace", "1h") == 0
    new = capsys.readouterr().out.strip()
    opened = opened_by(file)
    assert (await opened.principal(new)).tenant == (await opened.principal(old)).tenant == "acme"
    assert (await opened.principal(old)).expires_at is not None
    assert (await opened.principal(new)).expires_at is None


@pytest.mark.parametrize("order", ["revoke", "rotate"])
@pytest.mark.parametrize("key_id", ["0123456789ab", "", "{x}", "a\0b", "x" * 100_000])
def test_an_unknown_id_is_told(file: Path, capsys: pytest.CaptureFixture[str], order: str, key_id: str) -> None:
    assert keys(file, order, key_id) == 1
    said = capsys.readouterr().err
    assert said.startswith("antiphon: key: expected the id of one in `antiphon keys list`, got ")
    assert len(said) < 300


@pytest.mark.parametrize("order", ["revoke", "rotate"])
def test_who_gives_the_key_for_its_id_is_told_the_id_and_not_the_key(
    file: Path, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    key = made(file, capsys, "--tenant", "acme")
    assert keys(file, order, key) == 1
    said = capsys.readouterr().err
    assert f"got a key: its id is '{key[3:15]}'" in said
    assert key[16:20] not in said
    assert keys(file, order, key[3:15]) == 0


def test_what_no_key_can_be_for_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keys(file, "create", "--tenant", "{acme}") == 1
    assert "tenant: expected" in capsys.readouterr().err
    for origin in ("app.example", "https://App.example", "https://app.example:443", "https://app.example/talk"):
        assert keys(file, "create", "--tenant", "acme", "--origin", origin) == 1
        said = capsys.readouterr().err
        assert "origin: expected scheme://host[:port] as browsers send it" in said
        assert f"got '{origin}'" in said


def test_a_file_that_others_can_write_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(file, capsys, "--tenant", "acme")
    (file.parent / "keys.json").chmod(0o666)
    assert keys(file, "list") == 1
    assert "0600" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 30 * UNITS_S["d"])])
def test_times(text: str, seconds: int) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "0d", "-1d", "1w", "1.5h", "٣d", "9999999999d"])
def test_no_times(file: Path, text: str) -> None:
    with pytest.raises(SystemExit):
        keys(file, "create", "--tenant", "acme", f"--expires={text}")


def test_one_key_is_enough_to_be_open_to_others(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text().replace("server: {", "server: {host: 0.0.0.0, "))
    with pytest.raises(ExposureRefused, match="antiphon keys create"):
        check_keys(load(file), None)
    check_keys(load(file), "a-key")
    made(file, capsys, "--tenant", "acme")
    check_keys(load(file), None)


@pytest.mark.parametrize("key", ["ak_0123456789ab_x", "ek_a.b.c"])
def test_a_clients_key_is_no_servers(file: Path, key: str) -> None:
    with pytest.raises(KeysWrong, match="ANTIPHON_API_KEY: expected a key of your own making"):
        check_keys(load(file), key)


def test_a_key_that_no_header_carries_is_refused_at_the_start(file: Path) -> None:
    with pytest.raises(KeysWrong, match="ANTIPHON_API_KEY: expected characters that a header can carry"):
        check_keys(load(file), "two\nlines")
    check_keys(load(file), "clé \udce9")


def test_a_signing_key_has_a_length(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_SIGNING_KEY", f"{'a' * 32},short")
    with pytest.raises(KeysWrong, match="ANTIPHON_SIGNING_KEY: expected at least 32 characters, got 5"):
        check_keys(load(file), None)
