"""Cuts a Piper voice (a VITS graph in one ONNX file) into the two halves that stream.

encoder: phoneme ids → latent frames. Inputs `input` int64 [1, p], `input_lengths` int64 [1], `scales` float32 [3] as in the
whole, and the noise that the whole draws by itself: `duration_noise` float32 [1, 2, p] and `prior_noise` float32 [1, 192, n],
any n ≥ 1: frame i takes column i mod n, because the number of frames is known only inside the graph. Output `frames` [1, 192, t].
decoder: input `frames` [1, 192, t], output `samples` [1, 1, 1, 256·t].
"""

from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper
from onnx.utils import Extractor

FRAMES = "/Mul_7_output_0"
"""The latent frames: what the flow gives and `/dec/conv_pre` takes."""
DURATION_DRAW = "/dp/RandomNormalLike"
PRIOR_DRAW = "/RandomNormalLike"
CHANNELS = 192


class UnknownGraph(ValueError):
    """The file is no Piper graph of the shape that can be cut."""


def cut(source: Path, target: Path) -> None:
    """Write `encoder.onnx` and `decoder.onnx` into the folder `target`. Raises UnknownGraph."""
    whole = onnx.load_model_from_string(source.read_bytes())
    _noise_becomes_input(whole.graph, source)
    extractor = Extractor(onnx.shape_inference.infer_shapes(whole))
    encoder = extractor.extract_model(["input", "input_lengths", "scales", "duration_noise", "prior_noise"], [FRAMES])
    decoder = extractor.extract_model([FRAMES], ["output"])
    _rename(encoder.graph, FRAMES, "frames")
    _rename(decoder.graph, FRAMES, "frames")
    _rename(decoder.graph, "output", "samples")
    target.mkdir(parents=True, exist_ok=True)
    _save(encoder, target / "encoder.onnx")
    _save(decoder, target / "decoder.onnx")


def _noise_becomes_input(graph: GraphProto, source: Path) -> None:
    names = {node.name for node in graph.node if node.op_type == "RandomNormalLike"}
    if names != {DURATION_DRAW, PRIOR_DRAW} or not any(FRAMES in node.output for node in graph.node):
        raise UnknownGraph(
            f"{source}: expected a Piper graph with the tensor {FRAMES} and the draws {DURATION_DRAW}, {PRIOR_DRAW}; "
            f"it draws at {', '.join(sorted(names)) or 'no node'}"
        )
    graph.input.append(helper.make_tensor_value_info("duration_noise", TensorProto.FLOAT, [1, 2, "phonemes"]))
    graph.input.append(helper.make_tensor_value_info("prior_noise", TensorProto.FLOAT, [1, CHANNELS, "noise_columns"]))
    nodes = [new for node in graph.node for new in _replacement(node)]
    del graph.node[:]
    graph.node.extend(nodes)


def _replacement(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    if node.name == DURATION_DRAW:
        return [helper.make_node("Identity", ["duration_noise"], [node.output[0]], name="/duration_noise")]
    if node.name == PRIOR_DRAW:
        return _one_column_per_frame(like=node.input[0], output=node.output[0])
    return [node]


def _one_column_per_frame(like: str, output: str) -> list[onnx.NodeProto]:
    """prior_noise[:, :, arange(frames) % columns], where `like` is [1, 192, frames]."""

    def constant(name: str, value: int, shape: list[int]) -> onnx.NodeProto:
        return helper.make_node(
            "Constant", [], [name], name=name, value=helper.make_tensor(name, TensorProto.INT64, shape, [value])
        )

    def node(operation: str, inputs: list[str], result: str) -> onnx.NodeProto:
        return helper.make_node(operation, inputs, [result], name=result)

    take_columns = node("Gather", ["prior_noise", "/noise/column"], output)
    take_columns.attribute.append(helper.make_attribute("axis", 2))

    return [
        constant("/noise/zero", 0, []),
        constant("/noise/one", 1, []),
        constant("/noise/time_axis", 2, []),
        node("Shape", [like], "/noise/frames_shape"),
        node("Gather", ["/noise/frames_shape", "/noise/time_axis"], "/noise/frames"),
        node("Shape", ["prior_noise"], "/noise/noise_shape"),
        node("Gather", ["/noise/noise_shape", "/noise/time_axis"], "/noise/columns"),
        node("Range", ["/noise/zero", "/noise/frames", "/noise/one"], "/noise/frame"),
        node("Mod", ["/noise/frame", "/noise/columns"], "/noise/column"),
        take_columns,
    ]


def _rename(graph: GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]
    for value in (*graph.input, *graph.output):
        if value.name == old:
            value.name = new


def _save(model: ModelProto, path: Path) -> None:
    """Whole or not at all: an interrupted set-up leaves no half file under the final name."""
    partial = path.with_suffix(".partial")
    partial.write_bytes(model.SerializeToString())
    partial.replace(path)
