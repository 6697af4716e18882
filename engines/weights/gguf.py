"""A GGUF language model as bf16 safetensors with tokenizer and chat template, which vLLM loads. Needs no network.

transformers reads GGUF but refuses to save what it read so; the dequantised weights move into a clean model of the same config.
"""

# transformers publishes incomplete types; this file is the only one that converts with it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel


class UnequalConversion(ValueError):
    """The clean model does not compute what the GGUF model computes."""


def convert(source: Path, target: Path) -> None:
    """Write the model in `source` (*.gguf) as a Hugging Face folder `target`. Raises UnequalConversion."""
    folder, name = str(source.parent), source.name
    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    clean = _without_quantization(loaded)
    _check_equal(loaded, clean, source)
    clean.to(torch.bfloat16).save_pretrained(target)  # pyright: ignore[reportArgumentType] (a decorator hides the signature)
    AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(target)


def _without_quantization(model: PreTrainedModel) -> PreTrainedModel:
    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    settings["architectures"] = [type(model).__name__]
    clean = AutoModelForCausalLM.from_config(type(model.config).from_dict(settings), dtype=torch.float32)
    clean.load_state_dict(model.state_dict())
    clean.tie_weights()
    clean.generation_config = model.generation_config
    return clean


def _check_equal(model: PreTrainedModel, clean: PreTrainedModel, source: Path) -> None:
    tokens = torch.arange(5, 25)[None]
    with torch.no_grad():
        difference = (model(tokens).logits - clean(tokens).logits).abs().max().item()
    if difference != 0.0:
        raise UnequalConversion(f"{source.name}: logits differ by {difference} after the conversion, expected 0")
