"""Certificates for a test's own server, signed by themselves."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Pair(NamedTuple):
    """The certificate is its own authority: clients may be told to trust the file."""

    cert: Path
    key: Path


def write_pair(folder: Path, name: str = "own", *, host: str = "localhost", age_days: int = 1, life_days: int = 30) -> Pair:
    """For `host` and 127.0.0.1, made `age_days` ago, valid for `life_days` from then."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begins = datetime.now(UTC) - age_days * DAY
    names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + life_days * DAY)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    pair.cert.write_bytes(certificate.public_bytes(Encoding.PEM))
    pair.key.write_bytes(_pem(key, NoEncryption()))
    return pair


def write_encrypted_key(file: Path) -> None:
    file.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1()), BestAvailableEncryption(b"secret")))


def _pem(key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
