"""Where the store is, as one URL."""

from typing import Final
from urllib.parse import parse_qs, unquote

import msgspec

from sessions.store.servers import Place

SCHEMES: Final = ("memory", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_DEFAULT_PORTS = {"redis+sentinel": 26379, "rediss+sentinel": 26379}


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """`service` is the name that Sentinels know the primary by. `ca` is a file of certificates, for a TLS authority of one's
    own. Printed, it shows no password."""

    scheme: str
    places: tuple[Place, ...] = ()
    service: str = ""
    database: int = 0
    user: str | None = None
    password: str | None = None
    ca: str | None = None

    @property
    def kind(self) -> str:
        """redis, sentinel, cluster or memory."""
        return "redis" if self.scheme in ("redis", "rediss") else self.scheme.rpartition("+")[2]

    @property
    def with_tls(self) -> bool:
        return self.scheme.startswith("rediss")

    def __str__(self) -> str:
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.places)
        path = "/".join(part for part in (self.service, str(self.database) if self.database else "") if part)
        return f"{self.scheme}://{hosts}" + (f"/{path}" if path else "")

    __repr__ = __str__


class BadAddress(ValueError):
    """Of the URL it repeats only the part that is wrong, never the password."""

    def __init__(self, field: str, expected: str, got: str) -> None:
        super().__init__(f"store.url: {field}: expected {expected}, got {got!r}")


def parse(url: str) -> Address:
    """Raises BadAddress."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise BadAddress("scheme", f"one of {', '.join(f'{name}://' for name in SCHEMES)}", scheme[:40] if separator else "none")
    if scheme == "memory":
        if rest:
            raise BadAddress("host", "nothing after memory://", "something")
        return Address(scheme=scheme)
    rest, _, query = rest.partition("?")
    netloc, _, path = rest.partition("/")
    if "@" in path + query:
        raise BadAddress("password", "one whose /, ?, @ and : are written as %2F, %3F, %40 and %3A", "another one")
    credentials, at, hosts = netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    address = Address(
        scheme=scheme,
        places=tuple(_place(host, _DEFAULT_PORTS.get(scheme, 6379)) for host in hosts.split(",")),
        user=unquote(user) or None,
        password=unquote(password) or None if at else None,
        ca=_ca(query, scheme),
    )
    return _with_path(address, path.strip("/"))


def _with_path(address: Address, path: str) -> Address:
    if address.kind == "redis" and len(address.places) > 1:
        raise BadAddress("host", "one host; of several, redis+cluster:// or redis+sentinel://", str(len(address.places)))
    if address.kind == "cluster":
        if path not in ("", "0"):
            raise BadAddress("database", "none, a Cluster has only 0", path)
        return address
    if address.kind == "redis":
        return msgspec.structs.replace(address, database=_database(path))
    service, _, database = path.partition("/")
    if not service:
        raise BadAddress("service", "the primary's name among the Sentinels, as in host:26379/name", "none")
    return msgspec.structs.replace(address, service=unquote(service), database=_database(database))


def _place(text: str, default_port: int) -> Place:
    host, bracket, port = text.rpartition("]:") if text.startswith("[") else text.rpartition(":")
    if text.startswith("[") and not bracket:
        host, port = text.rstrip("]"), ""
    elif not text.startswith("[") and ":" not in text:
        host, port = text, ""
    host = host.strip("[]")
    if not host:
        raise BadAddress("host", "host or host:port, several with commas between them", text)
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise BadAddress("port", "a number from 1 to 65535", port[:40])
    return host, int(port or default_port)


def _database(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        raise BadAddress("database", "a number", text[:40])
    return int(text or 0)


def _ca(query: str, scheme: str) -> str | None:
    options = parse_qs(query, keep_blank_values=True)
    unknown = sorted(set(options) - {"ca"})
    if unknown:
        raise BadAddress("query", "only ca=FILE", unknown[0])
    if not options:
        return None
    if not scheme.startswith("rediss"):
        raise BadAddress("query", f"ca=FILE with {scheme.replace('redis', 'rediss')}:// alone, which is with TLS", f"{scheme}://")
    if not options["ca"][-1]:
        raise BadAddress("ca", "a file of certificates in PEM", "none")
    return options["ca"][-1]
