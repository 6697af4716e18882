"""Diffusers pipelines of a few thousand random parameters, with tokenizers that know letters: everything of the real ones but
their weight. Each function makes one in memory; `save` writes it as a folder in diffusers layout."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeAlias, cast

import diffusers
import numpy as np
import torch
import transformers
from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]  of a Path
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from engines.diffusion.pipelines.run import Pipeline


class TinyPipeline(Pipeline, Protocol):
    def save_pretrained(self, folder: Path) -> None: ...

    def set_progress_bar_config(self, *, disable: bool) -> None: ...


Make: TypeAlias = Callable[[], TinyPipeline]
torch.set_num_threads(1)  # as in a worker: several on busy cores wait for each other
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
VOCABULARY = len(SPECIAL) + len(LETTERS) + 1


def _new(library: ModuleType, name: str, *settings: object, **more: object) -> object:
    """An instance of a class of these libraries, whose constructors are typed for what they are mostly given."""
    return cast("Callable[..., object]", getattr(library, name))(*settings, **more)


def _seeded() -> None:
    torch.default_generator.manual_seed(0)


def letters(max_length: int = 12, ends: bool = True) -> object:
    """One token a letter, one for a space; anything else is unknown."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *LETTERS, " "])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return _new(
        transformers,
        "PreTrainedTokenizerFast",
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=max_length,
        chat_template="{% for m in messages %}{{ m['content'] }}{% endfor %}",
    )


def _clip(projection: bool = False) -> object:
    config = _new(
        transformers,
        "CLIPTextConfig",
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        max_position_embeddings=12,
        projection_dim=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return (
        _new(transformers, "CLIPTextModelWithProjection", config) if projection else _new(transformers, "CLIPTextModel", config)
    )


def _t5(width: int = 16) -> object:
    return _new(
        transformers,
        "T5EncoderModel",
        _new(
            transformers,
            "T5Config",
            vocab_size=VOCABULARY,
            d_model=width,
            d_kv=8,
            d_ff=16,
            num_layers=1,
            num_heads=2,
            pad_token_id=0,
            eos_token_id=2,
        ),
    )


def _vae(**changes: object) -> object:
    settings: dict[str, object] = {
        "block_out_channels": (8, 8),
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "layers_per_block": 1,
        "latent_channels": 4,
        "norm_num_groups": 1,
    }
    return _new(diffusers, "AutoencoderKL", **{**settings, **changes})


def _unet(in_channels: int = 4, channels: tuple[int, int] = (8, 16)) -> object:
    return _new(
        diffusers,
        "UNet2DConditionModel",
        sample_size=16,
        in_channels=in_channels,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=channels,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        norm_num_groups=4,
    )


def _whole(pipeline: object) -> TinyPipeline:
    """As the library loads it: without dropout, and silent."""
    whole = cast(TinyPipeline, pipeline)
    for component in whole.components.values():
        if isinstance(component, torch.nn.Module):
            component.eval()
    whole.set_progress_bar_config(disable=True)
    return whole


def _stable_diffusion(kind: str, in_channels: int = 4, channels: tuple[int, int] = (8, 16)) -> TinyPipeline:
    _seeded()
    return _whole(
        _new(
            diffusers,
            kind,
            vae=_vae(),
            text_encoder=_clip(),
            tokenizer=letters(),
            unet=_unet(in_channels, channels),
            scheduler=_new(
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
    _seeded()
    return _whole(
        _new(
            diffusers,
            "FluxPipeline",
            scheduler=_new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=_vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=_clip(),
            tokenizer=letters(),
            text_encoder_2=_t5(),
            tokenizer_2=letters(512),
            transformer=_new(
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
    _seeded()
    return _whole(
        _new(
            diffusers,
            "StableDiffusion3Pipeline",
            scheduler=_new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=_vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=_clip(projection=True),
            tokenizer=letters(),
            text_encoder_2=_clip(projection=True),
            tokenizer_2=letters(),
            text_encoder_3=_t5(32),
            tokenizer_3=letters(256),
            transformer=_new(
                diffusers,
                "SD3Transformer2DModel",
                sample_size=16,
                patch_size=1,
                in_channels=4,
                out_channels=4,
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
    _seeded()
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
        _new(
            diffusers,
            "QwenImagePipeline",
            scheduler=_new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=_new(
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
            text_encoder=_new(
                transformers,
                "Qwen2_5_VLForConditionalGeneration",
                _new(transformers, "Qwen2_5_VLConfig", text_config=text, vision_config=vision),
            ),
            tokenizer=letters(1200, ends=False),
            transformer=_new(
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
    _seeded()
    return _whole(
        _new(
            diffusers,
            "ZImagePipeline",
            scheduler=_new(diffusers, "FlowMatchEulerDiscreteScheduler"),
            vae=_vae(use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
            text_encoder=_new(
                transformers,
                "Qwen3Model",
                _new(
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
            transformer=_new(
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
    _seeded()
    return _whole(
        _new(
            diffusers,
            "WanPipeline",
            scheduler=_new(
                diffusers, "UniPCMultistepScheduler", prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
            ),
            vae=_new(
                diffusers,
                "AutoencoderKLWan",
                base_dim=8,
                z_dim=4,
                dim_mult=[1, 1, 1, 1],
                num_res_blocks=1,
                temperal_downsample=[False, True, True],
                latents_mean=[0.0] * 4,
                latents_std=[1.0] * 4,
            ),
            text_encoder=_new(
                transformers,
                "UMT5EncoderModel",
                _new(
                    transformers,
                    "UMT5Config",
                    vocab_size=VOCABULARY,
                    d_model=16,
                    d_kv=8,
                    d_ff=16,
                    num_layers=1,
                    num_heads=2,
                    pad_token_id=0,
                    eos_token_id=2,
                ),
            ),
            tokenizer=letters(512),
            transformer=_new(
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
