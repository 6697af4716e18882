"""A deployment file as a value: what runs (engines), how sessions behave (sessions), how the edge behaves (realtime)."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from engines import deployment as graph
from engines.configuration import ConfigurationError, WrongValue, names_to_values, read, record
from engines.deployment import GraphSettings
from realtime.settings import ServerSettings
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.identity.tenants import Tenants, TenantSettings
from sessions.jobs.settings import VideoSettings
from sessions.retention.settings import SessionLimits
from sessions.store.settings import HIDDEN, StoreSettings
from sessions.voice.settings import VoiceSettings

DEFAULT_FILE = Path(__file__).parent.parent / "deploy" / "voice.yaml"


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    graph: GraphSettings
    voice: VoiceSettings
    limits: SessionLimits
    server: ServerSettings
    store: StoreSettings = StoreSettings()
    tenants: Mapping[str, TenantSettings] = {}
    admission: AdmissionSettings = AdmissionSettings()
    seats: Mapping[str, CalibratedSeats] = {}
    """By kind of session."""
    videos: VideoSettings = VideoSettings()


def seats_file(file: Path) -> Path:
    """Where `antiphon calibrate` writes what it has found for a deployment, which may say something else itself."""
    return file.with_suffix(".seats.yaml")


def load(file: Path = DEFAULT_FILE) -> Deployment:
    """Reads and checks everything except whether the weights are there. Raises engines.configuration.ConfigurationError."""
    sections = read(file, (*graph.SECTIONS, "session", "server", "store", "tenants", "admission", "seats", "videos"))
    voice, limits = _session(file, sections)
    return Deployment(
        graph=graph.graph_settings(file, sections),
        voice=voice,
        limits=limits,
        server=record(file, "server", sections.get("server", {}), ServerSettings).located(file.parent),
        store=record(file, "store", sections.get("store", {}), StoreSettings),
        tenants=_tenants(file, sections.get("tenants", {})),
        admission=record(file, "admission", sections.get("admission", {}), AdmissionSettings),
        seats=_seats(file, sections),
        videos=record(file, "videos", sections.get("videos", {}), VideoSettings).located(file.parent),
    )


def render(deployment: Deployment) -> str:
    """The effective values, in the shape of the file that would set them; passwords are left out."""
    effective = {
        **_plain(deployment.graph),
        "session": _plain(deployment.limits) | _plain(deployment.voice),
        "server": _plain(_without_passwords(deployment.server)),
        "store": _plain(deployment.store.without_password()),
        "tenants": {name: _plain(tenant) for name, tenant in deployment.tenants.items()},
        "admission": _plain(deployment.admission),
        "seats": {kind: _plain(seats) for kind, seats in deployment.seats.items()},
        "videos": _plain(deployment.videos),
    }
    return yaml.safe_dump(effective, sort_keys=False, allow_unicode=True)


def _session(file: Path, sections: Mapping[str, object]) -> tuple[VoiceSettings, SessionLimits]:
    """One section for the operator, two records for the code."""
    values = names_to_values(file, "session", sections.get("session", {}))
    of_limits, of_voice = SessionLimits.__struct_fields__, VoiceSettings.__struct_fields__
    for key in values:
        if key not in of_limits and key not in of_voice:
            raise WrongValue(file, f"session.{key}", f"one of {', '.join((*of_limits, *of_voice))}", "an unknown key")
    limits = {key: value for key, value in values.items() if key in of_limits}
    voice = {key: value for key, value in values.items() if key in of_voice}
    return record(file, "session", voice, VoiceSettings), record(file, "session", limits, SessionLimits)


def _tenants(file: Path, section: object) -> Mapping[str, TenantSettings]:
    values = names_to_values(file, "tenants", section)
    tenants = {name: record(file, f"tenants.{name}", value, TenantSettings) for name, value in values.items()}
    try:
        Tenants(tenants)
    except ValueError as wrong:
        raise ConfigurationError(file, str(wrong)) from wrong
    return tenants


def _seats(file: Path, sections: Mapping[str, object]) -> Mapping[str, CalibratedSeats]:
    if "seats" not in sections and seats_file(file).exists():
        file = seats_file(file)
        sections = read(file, ("seats",))
    values = names_to_values(file, "seats", sections.get("seats", {}))
    return {kind: record(file, f"seats.{kind}", value, CalibratedSeats) for kind, value in values.items()}


def _without_passwords(server: ServerSettings) -> ServerSettings:
    servers = tuple(msgspec.structs.replace(each, credential=each.credential and HIDDEN) for each in server.webrtc.ice_servers)
    return msgspec.structs.replace(server, webrtc=msgspec.structs.replace(server.webrtc, ice_servers=servers))


def _plain(settings: msgspec.Struct) -> dict[str, object]:
    """Lists, mappings and scalars: JSON has no tuples, and the YAML of one would be a tag."""
    return msgspec.json.decode(msgspec.json.encode(settings), type=dict[str, object])
