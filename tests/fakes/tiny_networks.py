"""The networks and the tokenizer of tiny pipelines: a few thousand random parameters each."""

from collections.abc import Callable
from types import ModuleType
from typing import cast

import diffusers
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
VOCABULARY = len(SPECIAL) + len(LETTERS) + 1
CLIP_TOKENS = 24
"""Room for what the tests ask: the library logs whatever is cut off."""


def new(library: ModuleType, name: str, *settings: object, **more: object) -> object:
    """An instance of a class of these libraries, whose constructors are typed for what they are mostly given."""
    return cast("Callable[..., object]", getattr(library, name))(*settings, **more)


def seeded() -> None:
    torch.default_generator.manual_seed(0)


def letters(max_length: int = CLIP_TOKENS, ends: bool = True) -> object:
    """One token a letter, one for a space; anything else is unknown."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *LETTERS, " "])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return new(
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


def clip(projection: bool = False) -> object:
    config = new(
        transformers,
        "CLIPTextConfig",
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        max_position_embeddings=CLIP_TOKENS,
        projection_dim=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return new(transformers, "CLIPTextModelWithProjection", config) if projection else new(transformers, "CLIPTextModel", config)


def t5(width: int = 16, kind: str = "T5") -> object:
    return new(
        transformers,
        f"{kind}EncoderModel",
        new(
            transformers,
            f"{kind}Config",
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


def vae(**changes: object) -> object:
    settings: dict[str, object] = {
        "block_out_channels": (8, 8),
        "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2,
        "layers_per_block": 1,
        "latent_channels": 4,
        "norm_num_groups": 1,
    }
    return new(diffusers, "AutoencoderKL", **{**settings, **changes})


def unet(in_channels: int = 4, channels: tuple[int, int] = (8, 16)) -> object:
    return new(
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
