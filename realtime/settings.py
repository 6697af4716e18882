"""What the operator may set about the edge: the deployment's `server:` section."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from engines.logs import LogFormat, LogLevel, LogStyle
from realtime.webrtc.settings import WebRtcSettings
from sessions.identity.principal import ORIGIN_FORM, is_origin

API_KEY_VARIABLE = "ANTIPHON_API_KEY"
SIGNING_KEY_VARIABLE = "ANTIPHON_SIGNING_KEY"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes in bytes, times in seconds. Secrets do not belong in a file: the API key comes from the environment."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: str = ""
    tls_key: str = ""
    """PEM files; with both of them the server speaks https and wss. Relative ones count from the deployment's file. The
    certificate may bring its chain; the key has no passphrase."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies, such as `127.0.0.1` or `10.0.0.0/8`, whose word on who calls is believed."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names, without port, that requests may name besides loopback and `host`."""
    allowed_origins: tuple[str, ...] = ()
    """Origins, such as `https://example.org`, whose pages may call this server besides its own."""
    keys_file: str = ""
    """Where API keys are kept, as hashes, while `store.url` is `memory://`; a shared store keeps them itself. Empty:
    `antiphon/keys.json` in the folder of the user's state."""
    webrtc: WebRtcSettings = WebRtcSettings()
    realtime_priority: bool = True
    """Ask the system to run the audio clock and the codecs of calls before everything else, which it lets only root and
    CAP_SYS_NICE do."""
    max_body_bytes: int = 25 << 20
    """Largest body of a REST request: an upload for transcription."""
    max_message_bytes: int = 24 << 20
    """Largest WebSocket message that is read to its end; 15 MiB of audio are 20 MiB as base64."""
    max_append_bytes: int = 15 << 20
    """Most audio in one input_audio_buffer.append."""
    heartbeat_s: float = 5.0
    """A WebSocket peer is pinged this often; one that is silent for 1.5 of these is gone."""
    outbox_events: int = 256
    """Events that may wait for one client; when they are all waiting its session waits, nobody else's."""
    receive_timeout_s: float = 30.0
    """A REST request whose body stops for this long before its end is refused."""
    send_timeout_s: float = 30.0
    """A client that takes none of what is sent to it for this long is let go."""
    drain_s: float = 30.0
    """How long sessions get to come to the end of what is being said, after a request to stop."""
    shutdown_s: float = 1.5
    """How long open connections get to end after a request to stop."""
    log_level: LogLevel = "info"
    log_format: LogFormat = "text"
    """Lines for people, or JSON objects for machines; of every process."""

    @property
    def log_style(self) -> LogStyle:
        return LogStyle(self.log_level, self.log_format)

    def located(self, folder: Path) -> "ServerSettings":
        """With the paths that are relative counted from `folder`. Links stay: a renewed certificate is a new target of one."""

        def found(path: str) -> str:
            return path and os.path.abspath(folder / Path(path).expanduser())

        return msgspec.structs.replace(
            self, tls_cert=found(self.tls_cert), tls_key=found(self.tls_key), keys_file=found(self.keys_file)
        )

    def __post_init__(self) -> None:
        _require(0 <= self.port <= 65_535, "port", "0 to 65535", self.port)
        for name in ("max_body_bytes", "max_message_bytes", "max_append_bytes", "outbox_events"):
            _require(_number(self, name) >= 1, name, "at least 1", _number(self, name))
        for name in ("heartbeat_s", "receive_timeout_s", "send_timeout_s", "drain_s", "shutdown_s"):
            _require(_number(self, name) > 0, name, "more than 0", _number(self, name))
        _require(bool(self.tls_cert) or not self.tls_key, "tls_cert", "a file, as tls_key has one", self.tls_cert)
        _require(bool(self.tls_key) or not self.tls_cert, "tls_key", "a file, as tls_cert has one", self.tls_key)
        for proxy in self.trusted_proxies:
            _require(_is_network(proxy), "trusted_proxies", "an address or a network such as 10.0.0.0/8", proxy)
        for origin in self.allowed_origins:
            _require(is_origin(origin), "allowed_origins", ORIGIN_FORM, origin)


def api_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """A key that opens everything, besides those that `antiphon keys` makes; for a client, the one that it bears. None: there is
    none. Without the blanks and line ends around it: files of secrets have them, and headers do not."""
    return environment.get(API_KEY_VARIABLE, "").strip() or None


def signing_keys(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """With which client secrets are signed. The first signs, the others are believed."""
    return tuple(filter(None, environment.get(SIGNING_KEY_VARIABLE, "").split(",")))


def usual_keys_file(environment: Mapping[str, str] = os.environ) -> Path:
    state = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "antiphon" / "keys.json"


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _number(settings: ServerSettings, name: str) -> float:
    return float(msgspec.structs.asdict(settings)[name])


def _require(holds: bool, field: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"server.{field}: expected {expected}, got {got!r}")
