"""Pictures and films from a prompt, with or without a picture to begin with: decode, paint, develop."""

from engines.bridges.as_it_is import AsItIs
from engines.bridges.assembled import Assembled
from engines.parameters import Development, Picture
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage

STAGES = (
    Stage("pixels", ExecutionType.GENERATION, emits="picture", parameters=Picture, intake=Assembled),
    Stage("painter", ExecutionType.DIFFUSION, emits="pixels", parameters=Picture),
    Stage("developer", ExecutionType.GENERATION, emits="file", parameters=Development),
)
"""`pixels` makes one input of all that is pushed: the prompt as text, and uploaded files as arrays of bytes named after their
fields: image, image[1], …, mask. Each may come in several pieces.

`painter` takes the prompt, with the arrays `image`, `image[1]`, … uint8 [h, w, 3] and `mask` uint8 [h, w] (255: paint anew) where
there are any. It emits `pixels` uint8 [n, h, w, 3]: pictures, or the frames of a film in one chunk or several, each small enough
for the worker's ring; previews and progress on the way, with their attributes.

`developer` emits files as `bytes` uint8 [size], and what has no pixels as it is.
"""
EDGES = (Edge("pixels", "painter", AsItIs), Edge("painter", "developer", AsItIs))
ENTRIES = ("pixels", "painter")

IMAGES = Pipeline("images", STAGES, EDGES, outputs=(Output("image", "developer"),), entries=ENTRIES)
VIDEOS = Pipeline("videos", STAGES, EDGES, outputs=(Output("video", "developer"),), entries=ENTRIES)
