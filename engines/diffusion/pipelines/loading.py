"""A directory in diffusers layout as a pipeline that is ready on its device, with the library's own options."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportCallIssue=false

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from diffusers.models.autoencoders.autoencoder_kl import AutoencoderKL
from diffusers.pipelines.pipeline_utils import DiffusionPipeline
from diffusers.quantizers.pipe_quant_config import PipelineQuantizationConfig

from engines.diffusion.pipelines.folder import check_folder, lora_folder
from engines.diffusion.pipelines.library_logs import log_as_we_do
from engines.models.options import DiffusersOptions, LoraOptions, QuantizationOptions

logger = logging.getLogger(__name__)
WEIGHTS = (".safetensors", ".bin")
DENOISERS = ("unet", "transformer", "transformer_2", "prior", "decoder")


def load(directory: Path, options: DiffusersOptions) -> DiffusionPipeline:
    """Raises ValueError for what is missing, and what the library raises."""
    log_as_we_do()
    check_folder(directory)
    loras = [lora_folder(directory, number, lora) for number, lora in enumerate(options.loras)]
    device = _device(options.device)
    _check_device(device, options)
    logger.info("reading %s, %.1f GB, for %s", directory.name, _weights_bytes(directory) / 1e9, device)
    pipeline = DiffusionPipeline.from_pretrained(
        str(directory),
        dtype=_dtype(options.dtype, device),
        local_files_only=True,
        **_quantization(options.quantization),
    )
    pipeline.set_progress_bar_config(disable=True)
    _keep_vae_from_overflowing(pipeline)
    _add_loras(pipeline, loras, options.loras)
    _place(pipeline, options, device)
    _save_memory(pipeline, options)
    if options.compile is not None:
        for name in DENOISERS:
            if isinstance(network := pipeline.components.get(name), torch.nn.Module):
                network.compile(**cast("dict[str, bool]", options.compile))
    return pipeline


def _weights_bytes(directory: Path) -> int:
    """Of all that lies there: with variants beside each other it is more than will be read."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.suffix in WEIGHTS and file.is_file())


def _device(name: str) -> torch.device:
    return torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)


def _check_device(device: torch.device, options: DiffusersOptions) -> None:
    """Raises ValueError."""
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"options.device: expected cpu or auto on a machine without a GPU, got {options.device!r}")
    if device.type == "cpu" and options.offload != "none":
        raise ValueError(
            f"options.offload: expected none without a GPU, from which networks could be moved, got {options.offload!r}"
        )


def _dtype(name: str, device: torch.device) -> torch.dtype:
    chosen = ("bfloat16" if device.type == "cuda" else "float32") if name == "auto" else name
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[chosen]


def _quantization(options: QuantizationOptions | None) -> dict[str, object]:
    if options is None:
        return {}
    config = PipelineQuantizationConfig(
        quant_backend=options.backend,
        quant_kwargs=dict(options.settings),
        components_to_quantize=list(options.components) or None,
    )
    return {"quantization_config": config}


def _keep_vae_from_overflowing(pipeline: DiffusionPipeline) -> None:
    """A VAE that half precision is too coarse for: its pipelines make it float32 for each picture and half again afterwards,
    which would pull it away from under the other jobs."""
    vae = pipeline.components.get("vae")
    if isinstance(vae, AutoencoderKL) and vae.dtype == torch.float16 and vae.config["force_upcast"]:
        vae.to(dtype=torch.float32)


def _add_loras(pipeline: DiffusionPipeline, folders: Sequence[Path], loras: Sequence[LoraOptions]) -> None:
    """Needs `peft`, which says so itself."""
    if not loras:
        return
    names = [f"lora_{number}" for number in range(len(loras))]
    for name, folder, lora in zip(names, folders, loras, strict=True):
        pipeline.load_lora_weights(str(folder), weight_name=lora.weight_name, adapter_name=name, local_files_only=True)
    pipeline.set_adapters(names, [lora.scale for lora in loras])


def _place(pipeline: DiffusionPipeline, options: DiffusersOptions, device: torch.device) -> None:
    if options.offload == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif options.offload == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    else:
        pipeline.to(device)


def _save_memory(pipeline: DiffusionPipeline, options: DiffusersOptions) -> None:
    if options.attention_slicing:
        pipeline.enable_attention_slicing()
    vae = pipeline.components.get("vae")
    if options.vae_slicing and vae is not None:
        vae.enable_slicing()
    if options.vae_tiling and vae is not None:
        vae.enable_tiling()
