"""Which store a URL names, and what is said of one that names none."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.redis_server import running_redis
from sessions.store.address import PASSWORD_VARIABLE, open_store, with_password
from sessions.store.interface import StoreDown
from sessions.store.records import SessionRecord
from sessions.store.url import BadAddress, parse


@pytest.mark.parametrize(
    ("url", "shown", "kind", "with_tls"),
    [
        ("memory://", "memory://", "memory", False),
        ("redis://h", "redis://h:6379", "redis", False),
        ("redis://u:p%40ss@h:1/2", "redis://h:1/2", "redis", False),
        ("redis://[::1]:7/0", "redis://[::1]:7", "redis", False),
        ("redis://[::1]", "redis://[::1]:6379", "redis", False),
        ("rediss://:p@h", "rediss://h:6379", "redis", True),
        ("redis+sentinel://a,b:2/main", "redis+sentinel://a:26379,b:2/main", "sentinel", False),
        ("rediss+sentinel://u:p@a/main/3", "rediss+sentinel://a:26379/main/3", "sentinel", True),
        ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2", "cluster", False),
        ("redis+cluster://a:1/0", "redis+cluster://a:1", "cluster", False),
    ],
)
def test_addresses(url: str, shown: str, kind: str, with_tls: bool):
    address = parse(url)
    assert (str(address), repr(address), address.kind, address.with_tls) == (shown, shown, kind, with_tls)


def test_user_and_password_are_unquoted():
    address = parse("redis://us%3Aer:p%40s%2Fs:w@h/")
    assert (address.user, address.password) == ("us:er", "p@s/s:w")
    assert parse("redis://h").password is None
    assert parse("rediss://h?ca=/etc/ca.pem").ca == "/etc/ca.pem"


def test_a_password_may_stand_in_the_environment_and_the_urls_own_wins():
    kept_apart = {PASSWORD_VARIABLE: " s3cret\n"}
    assert with_password(parse("redis://user@h"), kept_apart).password == "s3cret"
    assert with_password(parse("redis://:own@h"), kept_apart).password == "own"
    assert with_password(parse("redis://h"), {PASSWORD_VARIABLE: ""}).password is None


async def test_the_environments_password_opens_a_redis_that_wants_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with running_redis(tmp_path, "--requirepass", "s3cret") as redis:
        with pytest.raises(StoreDown):
            async with open_store(redis.url, 0):
                pass
        monkeypatch.setenv(PASSWORD_VARIABLE, "s3cret")
        async with open_store(redis.url, 0) as store:
            assert await store.incarnation() > 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "scheme: expected one of memory://, redis://"),
        ("http://h", "scheme: expected one of memory://, redis://.*got 'http'"),
        ("memory://x", "host: expected nothing"),
        ("redis://", "host: expected host or host:port"),
        ("redis://:s3cret@/0", "host: expected host or host:port"),
        ("redis://:s3cret/x@h", "password: expected one whose /"),
        ("redis://:s3cret?x@h", "password: expected one whose /"),
        ("redis://h:port", "port: expected a number from 1 to 65535, got 'port'"),
        ("redis://h:70000", "port: expected a number from 1 to 65535"),
        ("redis://h:0", "port"),
        ("redis://:s3cret@h:p", "port"),
        ("redis://a,b", "host: expected one host; of several"),
        ("redis://h/x", "database: expected a number, got 'x'"),
        ("redis://h?timeout=3", "query: expected only ca=FILE, got 'timeout'"),
        ("redis://h?ca=/etc/ca.pem", "query: expected ca=FILE with rediss:// alone, which is with TLS, got 'redis://'"),
        ("redis+cluster://h?ca=/etc/ca.pem", r"query: expected ca=FILE with rediss\+cluster:// alone"),
        ("rediss://h?ca=", "ca: expected a file of certificates in PEM, got 'none'"),
        ("redis+sentinel://a:1", "service: expected the primary's name"),
        ("redis+sentinel://a:1/main/x", "database: expected a number"),
        ("redis+cluster://a:1/3", "database: expected none, a Cluster has only 0, got '3'"),
        ("redis+cluster://a:1,,b:2", "host: expected host or host:port"),
    ],
)
def test_a_bad_address_is_named_by_its_field(url: str, said: str):
    with pytest.raises(BadAddress, match=rf"^store\.url: {said}") as bad:
        parse(url)
    assert "s3cret" not in str(bad.value)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_bad_one(text: str):
    for url in (text, f"redis://{text}", f"redis+sentinel://{text}", f"redis+cluster://{text}"):
        with suppress(BadAddress):
            parse(url)


async def test_whole_stores(tmp_path: Path):
    async with running_redis(tmp_path) as server:
        for url in ("memory://", server.url):
            async with open_store(url, 0.0) as store:
                record = SessionRecord(session_id="s1", tenant="t", kind="voice", model="m", life_s=60, grace_s=60)
                fence = await store.open(record, "a", 10, b"t1")
                assert fence.incarnation == await store.incarnation()
                assert await store.put("api", "k", b"v") == b"v"
                assert await store.nodes() == ()
