"""Diffusers pipelines of a few thousand random parameters, with tokenizers that know letters: everything of the real ones but
their weight. Each function makes one in memory; `save` writes it as a folder in diffusers layout."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias, cast

import diffusers
import numpy as np
import torch
import transformers
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]  of a Path

from engines.diffusion.pipelines.run import Pipeline
from fakes.tiny_networks import VOCABULARY, clip, letters, new, seeded, t5, unet, vae


class TinyPipeline(Pipeline, Protocol):
    def save_pretrained(self, folder: Path) -> None: ...

    def set_progress_bar_config(self, *, disable: bool) -> None: ...


Make: TypeAlias = Callable[[], TinyPipeline]
torch.set_num_threads(1)  # as in a worker: several on busy cores wait for each other


def _whole(pipeline: object) -> TinyPipeline:
    """As the library loads it: without dropout, and silent."""
    whole = cast(TinyPipeline, pipeline)
    for component in whole.components.values():
        if isinstance(component, torch.nn.Module):
            component.eval()
    whole.set_progress_bar_config(disable=True)
    return whole


def _stable_diffusion(kind: str, in_channels: int = 4, channels: tuple[int, int] = (8, 16)) -> TinyPipeline:
    seeded()
    return _whole(
        new(
            diffusers,
            kind,
            vae=vae(),
            text_encoder=clip(),
            tokenizer=letters(),
            unet=unet(in_channels, channels),
            scheduler=new(
                diffusers,
                "DDIMScheduler",
                beta_schedule="scaled_linear",
                clip_sample=False,
                set_alpha_to_one=False,
                steps_offset=1,
            ),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        ),
    )


def stable_diffusion(channels: tuple[int, int] = (8, 16)) -> TinyPipeline:
    return _stable_diffusion("StableDiffusionPipeline", channels=channels)


def image_to_image() -> TinyPipeline:
    return _stable_diffusion("StableDiffusionImg2ImgPipeline")


def inpaint() -> TinyPipeline:
    return _stable_diffusion("StableDiffusionInpaintPipeline", in_channels=9)


def flux() -> TinyPipeline:
    seeded()
    return _whole(
        new(
            diffusers,
            "FluxPipeline",
            scheduler=new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=clip(),
            tokenizer=letters(),
            text_encoder_2=t5(),
            tokenizer_2=letters(512),
            transformer=new(
                diffusers,
                "FluxTransformer2DModel",
                patch_size=1,
                in_channels=16,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                pooled_projection_dim=16,
                axes_dims_rope=[4, 6, 6],
                guidance_embeds=True,
            ),
        )
    )


def stable_diffusion_3() -> TinyPipeline:
    seeded()
    return _whole(
        new(
            diffusers,
            "StableDiffusion3Pipeline",
            scheduler=new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=vae(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=clip(projection=True),
            tokenizer=letters(),
            text_encoder_2=clip(projection=True),
            tokenizer_2=letters(),
            text_encoder_3=t5(32),
            tokenizer_3=letters(256),
            transformer=new(
                diffusers,
                "SD3Transformer2DModel",
                sample_size=16,
                patch_size=1,
                in_channels=16,
                out_channels=16,
                num_layers=2,
                attention_head_dim=8,
                num_attention_heads=4,
                joint_attention_dim=32,
                caption_projection_dim=32,
                pooled_projection_dim=32,
            ),
        )
    )


def qwen_image() -> TinyPipeline:
    seeded()
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0},
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16}
    return _whole(
        new(
            diffusers,
            "QwenImagePipeline",
            scheduler=new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=new(
                diffusers,
                "AutoencoderKLQwenImage",
                base_dim=8,
                z_dim=4,
                dim_mult=[1, 2],
                num_res_blocks=1,
                temperal_downsample=[False],
                latents_mean=[0.0] * 4,
                latents_std=[1.0] * 4,
            ),
            text_encoder=new(
                transformers,
                "Qwen2_5_VLForConditionalGeneration",
                new(transformers, "Qwen2_5_VLConfig", text_config=text, vision_config=vision),
            ),
            tokenizer=letters(1200, ends=False),
            transformer=new(
                diffusers,
                "QwenImageTransformer2DModel",
                patch_size=2,
                in_channels=16,
                out_channels=4,
                num_layers=2,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                axes_dims_rope=(4, 6, 6),
            ),
        )
    )


def z_image() -> TinyPipeline:
    seeded()
    return _whole(
        new(
            diffusers,
            "ZImagePipeline",
            scheduler=new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=new(
                transformers,
                "Qwen3Model",
                new(
                    transformers,
                    "Qwen3Config",
                    vocab_size=VOCABULARY,
                    hidden_size=16,
                    intermediate_size=16,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    num_key_value_heads=2,
                    head_dim=8,
                    pad_token_id=0,
                    bos_token_id=1,
                    eos_token_id=2,
                ),
            ),
            tokenizer=letters(512, ends=False),
            transformer=new(
                diffusers,
                "ZImageTransformer2DModel",
                in_channels=4,
                dim=32,
                n_layers=1,
                n_refiner_layers=1,
                n_heads=2,
                n_kv_heads=2,
                cap_feat_dim=16,
                axes_dims=[4, 6, 6],
                axes_lens=[256, 32, 32],
            ),
        )
    )


def wan() -> TinyPipeline:
    seeded()
    return _whole(
        new(
            diffusers,
            "WanPipeline",
            scheduler=new(
                diffusers, "UniPCMultistepScheduler", prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
            ),
            vae=new(
                diffusers,
                "AutoencoderKLWan",
                base_dim=2,
                z_dim=4,
                dim_mult=[1, 1, 1, 1],
                num_res_blocks=1,
                temperal_downsample=[False, True, True],
                latents_mean=[0.0] * 4,
                latents_std=[1.0] * 4,
            ),
            text_encoder=t5(kind="UMT5"),
            tokenizer=letters(512),
            transformer=new(
                diffusers,
                "WanTransformer3DModel",
                patch_size=(1, 2, 2),
                num_attention_heads=2,
                attention_head_dim=12,
                in_channels=4,
                out_channels=4,
                text_dim=16,
                freq_dim=16,
                ffn_dim=16,
                num_layers=2,
                cross_attn_norm=True,
                qk_norm="rms_norm_across_heads",
                rope_max_seq_len=32,
            ),
        )
    )


BY_NAME: dict[str, Make] = {
    "stable_diffusion": stable_diffusion,
    "image_to_image": image_to_image,
    "inpaint": inpaint,
    "flux": flux,
    "stable_diffusion_3": stable_diffusion_3,
    "qwen_image": qwen_image,
    "z_image": z_image,
    "wan": wan,
}


def save(make: Make, folder: Path) -> Path:
    """`folder`, with the pipeline in it."""
    make().save_pretrained(folder)
    return folder


def save_lora(folder: Path) -> None:
    """A random one of rank 2, for the UNet of `stable_diffusion`, under the library's usual name."""
    made = np.random.default_rng(0)
    unet = cast(torch.nn.Module, stable_diffusion().components["unet"])
    tensors: dict[str, torch.Tensor] = {}
    for name, weight in unet.named_parameters():
        if name.endswith((".to_q.weight", ".to_k.weight", ".to_v.weight")):
            outputs, inputs = weight.shape
            module = f"unet.{name.removesuffix('.weight')}"
            tensors[f"{module}.lora_A.weight"] = torch.tensor(made.normal(size=(2, inputs)), dtype=torch.float32)
            tensors[f"{module}.lora_B.weight"] = torch.tensor(made.normal(size=(outputs, 2)), dtype=torch.float32)
    save_file(tensors, folder / "pytorch_lora_weights.safetensors")
