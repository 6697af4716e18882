"""Addresses as an operator writes them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.network.addresses import TcpAddress, UnixAddress, address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unix:/run/a b/w.sock", UnixAddress("/run/a b/w.sock")),
        ("tcp://gpu-2:7100", TcpAddress("gpu-2", 7100)),
        ("tcp://10.0.0.5:0", TcpAddress("10.0.0.5", 0)),
        ("tcp://[fd00::1]:7100", TcpAddress("fd00::1", 7100)),
    ],
)
def test_addresses_are_read_and_written_alike(text: str, expected: UnixAddress | TcpAddress) -> None:
    assert address(text) == expected
    assert str(address(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "unix:relative", "unix:", "/run/w.sock", "tcp://host", "tcp://:7100", "tcp://host:70000", "tcp://host:x", "http://host:80",
     "tcp://host:80/path", "tcp://me@host:80", "tcp://fd00::1:7100", "tcp://host:80?x"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected unix:/path or tcp://host:port, got"):
        address(text)


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_a_value_error(tail: str) -> None:
    for text in (tail, f"tcp://{tail}", f"unix:{tail}"):
        with suppress(ValueError):
            address(text)


@pytest.mark.parametrize(
    ("host", "loopback", "wildcard"),
    [
        ("127.0.0.1", True, False),
        ("localhost", True, False),
        ("::1", True, False),
        ("0.0.0.0", False, True),
        ("::", False, True),
        ("10.0.0.5", False, False),
        ("localhost.example.org", False, False),
    ],
)
def test_who_can_reach_it(host: str, loopback: bool, wildcard: bool) -> None:
    assert (TcpAddress(host, 1).is_loopback, TcpAddress(host, 1).is_wildcard) == (loopback, wildcard)
