"""Proxies of ours are believed, down to the first address that is none of them; nobody else is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from realtime.errors import Refusal
from realtime.forwarded import Caller, caller

OURS = ("127.0.0.1", "10.0.0.0/8", "2001:db8::/32")
PROXY = Caller("127.0.0.1", "http", "127.0.0.1:8080")
FOR, PROTO, HOST, FORWARDED = "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"


def seen(*headers: tuple[str, str], connection: Caller = PROXY, trusted: tuple[str, ...] = OURS) -> Caller:
    return caller(connection, CIMultiDictProxy(CIMultiDict(headers)), trusted)


def address(*headers: tuple[str, str]) -> str:
    return seen(*headers).address


def understood(*headers: tuple[str, str]) -> Caller | None:
    """None: refused."""
    try:
        return seen(*headers)
    except Refusal:
        return None


USUAL = ((FOR, "192.0.2.7"), (PROTO, "https"), (HOST, "voice.example"))
SEEN = Caller("192.0.2.7", "https", "voice.example")


def test_a_proxy_of_ours_is_believed() -> None:
    assert seen(*USUAL) == SEEN
    assert seen((FORWARDED, "for=192.0.2.7;proto=https;host=voice.example")) == SEEN
    assert seen((FORWARDED, 'For="192.0.2.7:4711" ; PROTO=wss ; host="voice.example"; by=_me')) == SEEN
    assert seen() == PROXY
    assert seen((PROTO, "https")) == Caller("127.0.0.1", "https", "127.0.0.1:8080")


@pytest.mark.parametrize("trusted", [(), ("10.0.0.0/8",), ("::1",)])
def test_nobody_else_is(trusted: tuple[str, ...]) -> None:
    assert seen(*USUAL, trusted=trusted) == PROXY
    assert seen((FORWARDED, 'for="broken'), trusted=trusted) == PROXY


@pytest.mark.parametrize("peer", ["", "unix:", "not an address"])
def test_a_peer_without_an_address_is_no_proxy_of_ours(peer: str) -> None:
    stranger = Caller(peer, "http", "localhost")
    assert seen(*USUAL, connection=stranger) == stranger


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        (("192.0.2.7",), "192.0.2.7"),
        (("203.0.113.1, 192.0.2.7",), "192.0.2.7"),  # the client's own invention stands left
        (("203.0.113.1", "192.0.2.7"), "192.0.2.7"),
        (("192.0.2.7, 10.1.2.3",), "192.0.2.7"),
        (("203.0.113.1, 192.0.2.7, 10.1.2.3, 10.1.2.4",), "192.0.2.7"),
        (("10.9.9.9, 10.1.2.3",), "10.9.9.9"),
        (("192.0.2.7:4711",), "192.0.2.7"),
        (("2001:db9::1",), "2001:db9::1"),
        (("[2001:db9::1]",), "2001:db9::1"),
        (("[2001:db9::1]:4711",), "2001:db9::1"),
        (("::ffff:192.0.2.7",), "192.0.2.7"),
        (("192.0.2.7, ::ffff:10.0.0.1",), "192.0.2.7"),
        (("192.0.2.7, [2001:db8::9]:443",), "192.0.2.7"),
        (("unknown",), "127.0.0.1"),
        (("unknown, 10.1.2.3",), "10.1.2.3"),
        (("_secret:80, 10.1.2.3",), "10.1.2.3"),
        (("192.0.2.7, unknown",), "127.0.0.1"),  # whoever is unknown may have invented the rest
        (("' OR 1=1, \udcff, 192.0.2.7",), "192.0.2.7"),
        ((", ,",), "127.0.0.1"),
        (("",), "127.0.0.1"),
    ],
)
def test_the_client_is_the_first_from_the_right_that_is_no_proxy_of_ours(chain: Sequence[str], client: str) -> None:
    assert address(*((FOR, line) for line in chain)) == client


@pytest.mark.parametrize(
    ("line", "client"),
    [
        ("for=203.0.113.1, for=192.0.2.7", "192.0.2.7"),
        ("for=192.0.2.7, for=10.1.2.3", "192.0.2.7"),
        ('for="[2001:db9::1]:4711"', "2001:db9::1"),
        ("for=[2001:db9::1]:4711", "2001:db9::1"),  # some leave the quotes out
        ('for="_gazonk, for=10.0.0.1", for=192.0.2.7', "192.0.2.7"),
        ('for="192.0.2.\\7"', "192.0.2.7"),
        ("for=unknown", "127.0.0.1"),
        ("for=_hidden, for=10.1.2.3", "10.1.2.3"),
        ("proto=http, for=192.0.2.7", "192.0.2.7"),
        (", ,for=192.0.2.7,", "192.0.2.7"),
        ("", "127.0.0.1"),
    ],
)
def test_so_it_is_in_the_standard_header(line: str, client: str) -> None:
    assert address((FORWARDED, line)) == client


def test_each_proxy_of_ours_adds_to_what_the_outermost_of_them_saw() -> None:
    outermost = Caller("192.0.2.7", "https", "voice.example")
    assert (
        seen((FORWARDED, "for=1.1.1.1;proto=http;host=a, for=192.0.2.7;proto=https;host=voice.example, for=10.0.0.1"))
        == outermost
    )
    assert seen((FOR, "1.1.1.1, 192.0.2.7, 10.0.0.1"), (PROTO, "http, https, http"), (HOST, "a, voice.example, b")) == outermost
    assert seen((FOR, "1.1.1.1, 192.0.2.7, 10.0.0.1"), (PROTO, "https"), (HOST, "voice.example")) == outermost


@pytest.mark.parametrize(
    "line",
    [
        'for="192.0.2.7',
        "for",
        "=x",
        "for=a b",
        "for=1.1.1.1;for=2.2.2.2",
        'for="a"b',
        "for=\x00,;",
        '"',
        ";" * 50,
    ],
)
def test_a_header_that_means_nothing_is_refused(line: str) -> None:
    with pytest.raises(Refusal) as refused:
        seen((FORWARDED, line))
    assert (refused.value.status, refused.value.body.code, refused.value.body.param) == (400, "invalid_header", FORWARDED)


@pytest.mark.parametrize("scheme", ["gopher", "https, ftp", "httpss", "ht tp"])
def test_a_scheme_that_is_none_is_refused(scheme: str) -> None:
    with pytest.raises(Refusal, match=f"{PROTO}: expected http or https, got"):
        seen((PROTO, scheme))


def test_two_headers_that_contradict_each_other_are_refused() -> None:
    """A proxy that writes one of the two kinds passes the other on as the client wrote it."""
    with pytest.raises(Refusal, match="Forwarded: expected the same as the X-Forwarded headers"):
        seen((FOR, "192.0.2.7"), (FORWARDED, "for=198.51.100.1"))
    with pytest.raises(Refusal, match="Forwarded: expected the same"):
        seen(*USUAL, (FORWARDED, "for=192.0.2.7;host=evil.example"))
    assert seen(*USUAL, (FORWARDED, "for=192.0.2.7;proto=https")) == SEEN


HEADER = st.text(st.characters(max_codepoint=255), max_size=60) | st.text('for=proto;,"\\[]:.10https ', max_size=60)


@given(st.lists(st.tuples(st.sampled_from([FOR, PROTO, HOST, FORWARDED]), HEADER), max_size=5))
def test_whatever_comes_is_understood_or_refused(headers: list[tuple[str, str]]) -> None:
    found = understood(*headers)
    assert found is None or (found.scheme in ("http", "https") and found.address != "")


@pytest.mark.timeout(5)
@pytest.mark.parametrize("piece", ['"', ',"', 'for="\\', "for=a;", ", ", "for=a,", "[", "a-", 'for="",'])
def test_long_headers_cost_little(piece: str) -> None:
    for name in (FOR, FORWARDED, PROTO, HOST):
        for _ in range(50):
            understood((name, piece * (8000 // len(piece))))
