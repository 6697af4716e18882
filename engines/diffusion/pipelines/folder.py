"""What is wrong with a folder in diffusers layout, told by the key or the part that it is wrong in, before anything is loaded."""

from pathlib import Path

import diffusers
import msgspec

from engines.models.options import LoraOptions

INDEX = "model_index.json"


def check_folder(directory: Path) -> None:
    """Raises ValueError."""
    index = directory / INDEX
    try:
        content = msgspec.json.decode(index.read_bytes(), type=dict[str, object])
    except (OSError, msgspec.MsgspecError) as broken:
        raise ValueError(f"directory: expected a folder with {INDEX}, a JSON object, and {index} is none ({broken})") from broken
    name = content.get("_class_name")
    if not isinstance(name, str) or not hasattr(diffusers, name):
        known = f"a pipeline of diffusers {diffusers.__version__}"
        raise ValueError(f"_class_name: expected {known} (code in a folder is not run), got {name!r} in {index}")
    for part, kind in content.items():
        if isinstance(kind, list) and kind and kind[0] is not None and not (directory / part).is_dir():
            raise ValueError(f"{part}: expected a folder {directory / part}, as {INDEX} has it, and there is none")


def lora_folder(directory: Path, number: int, lora: LoraOptions) -> Path:
    """A relative one counts from `directory`, the pipeline's. Raises ValueError."""
    folder = directory / Path(lora.directory).expanduser()
    if not (folder / lora.weight_name).is_file():
        raise ValueError(f"options.loras[{number}].directory: expected a folder with {lora.weight_name}, got {folder}")
    return folder
