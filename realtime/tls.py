"""The server's own certificate: what is wrong with it is told before anything starts, and a renewed one replaces it in place."""

import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from realtime.settings import ServerSettings

log = logging.getLogger(__name__)


class TlsError(ValueError):
    """The certificate or its key cannot be used: one sentence that names the setting and the file."""

    def __init__(self, setting: str, file: Path, fault: str) -> None:
        super().__init__(f"server.{setting}: {file}: {fault}")


class Certificate:
    """`cert` is a chain in PEM, the server's own certificate first; `key` its private key in PEM. Raises TlsError."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert = cert
        self._key = key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(self.context)

    def renew(self) -> None:
        """Reads the files again, for connections that come from now on. Raises TlsError, and then the old ones stay in use."""
        self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        self._load(self.context)

    def _load(self, context: ssl.SSLContext) -> None:
        _check_dates(self._cert)
        _read("tls_key", self._key)
        try:
            context.load_cert_chain(self._cert, self._key, password=self._refuse_password)
        except ssl.SSLError as wrong:
            raise self._explained(wrong) from wrong

    def _refuse_password(self) -> str:
        raise TlsError("tls_key", self._key, "the key is encrypted; store it without a passphrase, readable by the server alone")

    def _explained(self, wrong: ssl.SSLError) -> TlsError:
        match wrong.reason:
            case "KEY_VALUES_MISMATCH" | "KEY_TYPE_MISMATCH":
                return TlsError("tls_key", self._key, f"it is not the key of the certificate in {self._cert}")
            case "EE_KEY_TOO_SMALL" | "CA_KEY_TOO_SMALL" | "CA_MD_TOO_WEAK":
                return TlsError("tls_cert", self._cert, "its key or signature is too weak for TLS today")
            case _:
                return TlsError("tls_key", self._key, "expected a private key in PEM, got something else")


def own_certificate(settings: ServerSettings) -> Certificate | None:
    """None without `tls_cert`. Raises TlsError."""
    return Certificate(Path(settings.tls_cert), Path(settings.tls_key)) if settings.tls_cert else None


def _check_dates(file: Path) -> None:
    """Raises TlsError. A certificate that is out of date is used all the same: its owner may well be about to renew it."""
    chain = _read("tls_cert", file)
    try:
        own = x509.load_pem_x509_certificates(chain)[0]
    except ValueError as wrong:
        raise TlsError("tls_cert", file, "expected a certificate in PEM, got something else") from wrong
    now = datetime.now(UTC)
    if own.not_valid_after_utc < now:
        log.warning("server.tls_cert: %s has expired on %s: browsers will refuse it", file, f"{own.not_valid_after_utc:%F}")
    if own.not_valid_before_utc > now:
        log.warning("server.tls_cert: %s is valid from %s only: browsers will refuse it", file, f"{own.not_valid_before_utc:%F}")


def _read(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as absent:
        raise TlsError(setting, file, "there is no such file") from absent
    except OSError as unreadable:
        raise TlsError(setting, file, f"it cannot be read: {unreadable.strerror}") from unreadable
