"""Redis over TLS, and what is said when no connection comes about."""

import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError

from fakes.certificates import Pair, write_pair
from fakes.ports import free_port
from fakes.redis_server import running_redis
from sessions.store.address import connected
from sessions.store.failures import store_down
from sessions.store.interface import StoreDown
from sessions.store.url import BadAddress, parse


async def test_over_tls_only_the_right_authority_is_trusted(tmp_path: Path):
    own, other = write_pair(tmp_path, host="127.0.0.1"), write_pair(tmp_path, "other", host="127.0.0.1")
    async with over_tls(tmp_path, own, "--tls-auth-clients", "no") as place:
        async with connected(parse(f"rediss://{place}?ca={own.cert}")) as connection:
            assert await connection.call("shelf_put", ("{shelves}:s",), ("n", b"v", 0)) == b"v"
        for url in (f"rediss://{place}?ca={other.cert}", f"rediss://{place}"):
            assert "certificate is not believed" in await refused(url)
        assert "cannot be reached" in await refused(f"redis://{place}")


async def test_what_is_wrong_with_tls_is_said(tmp_path: Path):
    own, old = write_pair(tmp_path), write_pair(tmp_path, "old", age_days=60, life_days=30)
    async with over_tls(tmp_path, own) as place:
        why = await refused(f"rediss://{place}?ca={own.cert}")
        assert re.search("tls-auth-clients no|cannot be reached", why)  # its alert may be lost as it hangs up
        for no_certificate in (tmp_path / "missing.pem", own.key, tmp_path):
            with pytest.raises(BadAddress, match=r"^store\.url: ca: expected a file of certificates in PEM, got "):
                await refused(f"rediss://{place}?ca={no_certificate}")
    async with over_tls(tmp_path, old, "--tls-auth-clients", "no") as place:
        assert "certificate has expired" in await refused(f"rediss://{place}?ca={old.cert}")


def test_that_clients_have_no_certificate_is_said():
    error = ConnectionError("Error 1 while writing to socket.")
    error.__context__ = ssl.SSLError(1, "tlsv13 alert certificate required")
    error.__context__.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    assert "tls-auth-clients no" in str(store_down(error))


async def test_a_host_without_an_address_is_said_to_be_the_fault():
    assert "nobody knows the host" in await refused("redis://no-such-host.invalid:6379")


@asynccontextmanager
async def over_tls(folder: Path, pair: Pair, *options: str) -> AsyncGenerator[str]:
    """Host and port."""
    port, keys = free_port(), ("--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key))
    async with running_redis(folder, "--tls-port", str(port), "--tls-ca-cert-file", str(pair.cert), *keys, *options):
        yield f"127.0.0.1:{port}"


async def refused(url: str) -> str:
    with pytest.raises(StoreDown) as down:
        async with connected(parse(url)):
            pass
    return str(down.value)
