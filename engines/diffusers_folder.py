"""`diffusers: ./folder` in a deployment: a directory in diffusers layout is served, with everything around it as it is usual."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from engines.configuration import ConfigurationError, WrongValue, shown
from engines.named_path import named_path

SECTION = "diffusers"
WRITTEN_OUT = ("pipeline", "workers", "stages", "edges", "voices")
"""The sections that it stands for."""
INDEX = "model_index.json"
_FILMS = re.compile(
    r"Video|^(Allegro|AnimateDiff|AnyFlow|ChronoEdit|CogVideoX|ConsisID|Cosmos(?!2TextToImage)|EasyAnimate|Helios"
    r"|HunyuanSkyreels|I2VGen|Kandinsky(5[IT]2V|6)|Latte|LTX|LucyEdit|Mochi|PIA|SanaWM|SkyReels|Wan)"
)
"""Classes of diffusers 0.42 whose pipelines make films: those that are asked for frames, or given some."""
AT_ONCE = 64
"""Requests that wait do so in the painter, which knows their deadlines; each has its place in all stages meanwhile."""
HANG_LIMIT_S = 300
"""One call may be that of a large network on a CPU, or the decoding of a whole film."""
PAINTER_RING_MB = 128


def written_out(file: Path, sections: Mapping[str, object]) -> Mapping[str, object]:
    """The sections, with what `diffusers:` means in its place. Raises ConfigurationError."""
    if SECTION not in sections:
        return sections
    if doubled := next((section for section in WRITTEN_OUT if section in sections), None):
        raise WrongValue(file, SECTION, f"it without `{doubled}`, for which it stands (`antiphon config` writes it out)", "both")
    folder = sections[SECTION]
    if not isinstance(folder, str) or not folder:
        raise WrongValue(file, SECTION, "the path of a folder in diffusers layout", shown(folder))
    directory = named_path(file, SECTION, folder)
    others = {name: value for name, value in sections.items() if name != SECTION}
    return others | _deployment(directory, films=makes_films(_class_name(file, directory)))


def makes_films(class_name: str) -> bool:
    return _FILMS.search(class_name) is not None


def _deployment(directory: Path, *, films: bool) -> dict[str, object]:
    painter = {"model": "diffusers", "directory": str(directory), "slots": AT_ONCE, "hang_limit_s": HANG_LIMIT_S}
    return {
        "pipeline": "videos" if films else "images",
        "workers": {
            "painter": {"stages": ["painter"], "ring_mb": PAINTER_RING_MB},
            "darkroom": {"stages": ["pixels", "developer"], "device": "cpu"},
        },
        "stages": {
            "pixels": {"model": "pixels", "slots": AT_ONCE},
            "painter": painter,
            "developer": {"model": "developer", "slots": AT_ONCE, "hang_limit_s": HANG_LIMIT_S},
        },
    }


def _class_name(file: Path, directory: Path) -> str:
    """Raises ConfigurationError."""
    index = directory / INDEX
    try:
        content = msgspec.json.decode(index.read_bytes(), type=dict[str, object])
    except OSError as absent:
        here = "a folder of this machine in diffusers layout (nothing is downloaded)"
        fault = f"{SECTION}: expected {here}, and {index} cannot be read ({absent.strerror})"
        raise ConfigurationError(file, fault) from absent
    except msgspec.MsgspecError as broken:
        raise ConfigurationError(file, f"{SECTION}: expected a JSON object in {index}, got something else ({broken})") from broken
    name = content.get("_class_name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(file, f"{SECTION}: expected the name of a pipeline as _class_name in {index}, got {shown(name)}")
    return name
