"""A server without keys serves its own machine, and nobody else."""

from realtime.origins import is_loopback
from realtime.settings import API_KEY_VARIABLE, ServerSettings

HOW = f"make a key with `antiphon keys create`, set {API_KEY_VARIABLE}"


class ExposureRefused(ValueError):
    """The server would be open to strangers."""


def is_exposed(settings: ServerSettings) -> bool:
    """Whether others than this machine can reach it."""
    return not is_loopback(settings.host) or bool(settings.trusted_proxies)


def check_exposure(settings: ServerSettings, *, has_keys: bool) -> None:
    """Without a key only this machine may connect, and that only without a proxy in between. Raises ExposureRefused."""
    if has_keys:
        return
    if not is_loopback(settings.host):
        raise ExposureRefused(f"--host {settings.host} would let other machines in without a key: {HOW}, or bind 127.0.0.1")
    if settings.trusted_proxies:
        raise ExposureRefused(
            f"server.trusted_proxies: a proxy on {settings.trusted_proxies[0]} would let other machines in without a key: {HOW}"
        )
