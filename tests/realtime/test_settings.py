import msgspec
import pytest

from realtime.settings import ServerSettings, api_key


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"port": 70_000}, "server.port"),
        ({"max_body_bytes": 0}, "server.max_body_bytes"),
        ({"heartbeat_s": 0.0}, "server.heartbeat_s"),
        ({"receive_timeout_s": 0.0}, "server.receive_timeout_s"),
        ({"allowed_origins": ("example.org",)}, "server.allowed_origins"),
        ({"trusted_proxies": ("proxy.example",)}, "server.trusted_proxies"),
        ({"trusted_proxies": ("10.0.0.1/8",)}, "server.trusted_proxies"),
        ({"tls_cert": "own.pem"}, "server.tls_key"),
        ({"tls_key": "own.key"}, "server.tls_cert"),
        ({"allowed_origins": ("https://example.org/",)}, "server.allowed_origins"),
        ({"allowed_origins": ("https://Example.org",)}, "server.allowed_origins"),
        ({"allowed_origins": ("https://example.org:443",)}, "server.allowed_origins"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"{field}: expected .* got"):
        msgspec.convert(changes, ServerSettings)


def test_the_key_comes_from_the_environment() -> None:
    assert api_key({"ANTIPHON_API_KEY": "secret"}) == "secret"
    assert api_key({"ANTIPHON_API_KEY": ""}) is None
    assert api_key({}) is None


@pytest.mark.parametrize("around", ["\n", "\r\n", " ", "\t"])
def test_a_key_from_a_file_is_the_key(around: str) -> None:
    assert api_key({"ANTIPHON_API_KEY": f"{around}a key{around}"}) == "a key"
    assert api_key({"ANTIPHON_API_KEY": around}) is None
