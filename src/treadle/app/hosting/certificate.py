"""The certificate of this computer's page on the network: made here, kept for its owner alone, known by its print."""

import ipaddress
import ssl
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from treadle.app.config.places import data_directory
from treadle.protocol.errors import ConfigError
from treadle.workspace.files.private_file import write_private

_VALID = timedelta(days=397)
"""Browsers of phones refuse what is valid for longer."""

_RENEWED = timedelta(days=30)


class PageCertificate(Struct, frozen=True, kw_only=True):
    """A certificate with its key in one `file`; `fingerprint` is its SHA-256 as browsers show it: `AB:12:...`."""

    file: Path
    fingerprint: str

    def context(self) -> ssl.SSLContext:
        """Give what a server needs to use it."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.load_cert_chain(self.file)
        return made


def page_certificate(names: Collection[str], now: datetime | None = None) -> PageCertificate:
    """Give the certificate for these addresses and names: the one that is kept, or a new one where that does not do.

    A new one is made where it ends within 30 days, was made for others, or cannot be read by its owner alone.
    Raises `ConfigError` where it cannot be written.
    """
    now = datetime.now(UTC) if now is None else now
    file = data_directory() / "web" / "certificate.pem"
    wanted = list(dict.fromkeys(_general_names(names)))
    kept = _kept(file, wanted, now)
    if kept is None:
        kept, text = _made(wanted, now)
        try:
            write_private(file, text, follow=False)
        except OSError as error:
            raise ConfigError(
                "certificate-unwritable",
                "The page's certificate cannot be written, and without one it does not go to the network.",
                why=f"{file}: {error.strerror}.",
                fix="Correct that, or leave out --lan.",
            ) from error
    return PageCertificate(file=file, fingerprint=kept.fingerprint(SHA256()).hex(":").upper())


def _kept(file: Path, wanted: Sequence[x509.GeneralName], now: datetime) -> x509.Certificate | None:
    try:
        if file.is_symlink() or stat.S_IMODE(file.stat().st_mode) & 0o077:
            return None
        data = file.read_bytes()
        found = x509.load_pem_x509_certificate(data)
        if load_pem_private_key(data, None).public_key() != found.public_key():
            return None
        known = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, TypeError, x509.ExtensionNotFound):
        return None
    lasts = found.not_valid_before_utc <= now and now + _RENEWED < found.not_valid_after_utc
    return found if lasts and frozenset(known) == frozenset(wanted) else None


def _made(names: Sequence[x509.GeneralName], now: datetime) -> tuple[x509.Certificate, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Treadle on this computer")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made, private + made.public_bytes(Encoding.PEM)


def _general_names(names: Collection[str]) -> Iterator[x509.GeneralName]:
    """Write addresses without a zone and names in ASCII, as certificates have them; leave out what cannot be named."""
    for name in sorted(names):
        try:
            yield x509.IPAddress(ipaddress.ip_address(name.partition("%")[0]))
        except ValueError:
            with suppress(UnicodeError):
                yield x509.DNSName(name.encode("idna").decode())
