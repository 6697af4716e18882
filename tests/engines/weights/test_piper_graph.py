from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from engines.models.onnx_session import onnx_session
from engines.weights.piper_graph import UnknownGraph, cut


def constant(name: str, values: list[int]) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [len(values)], values))


def small_voice() -> ModelProto:
    """Draws where a Piper voice draws: frames [1, 192, 2·p] are prior noise × summed duration noise, samples twice the frames."""
    nodes = [
        helper.make_node("Cast", ["input"], ["ids"], to=TensorProto.FLOAT),
        constant("channel_axis", [1]),
        helper.make_node("Unsqueeze", ["ids", "channel_axis"], ["row"]),
        constant("two_rows", [1, 2, 1]),
        helper.make_node("Expand", ["row", "two_rows"], ["durations"]),
        helper.make_node("RandomNormalLike", ["durations"], ["duration_draw"], name="/dp/RandomNormalLike"),
        helper.make_node("ReduceSum", ["duration_draw"], ["duration"], keepdims=0),
        constant("all_rows", [1, 192, 1]),
        helper.make_node("Expand", ["row", "all_rows"], ["stretched"]),
        helper.make_node("Concat", ["stretched", "stretched"], ["prior"], axis=2),
        helper.make_node("RandomNormalLike", ["prior"], ["prior_draw"], name="/RandomNormalLike"),
        helper.make_node("Mul", ["prior_draw", "duration"], ["/Mul_7_output_0"]),
        helper.make_node("Add", ["/Mul_7_output_0", "/Mul_7_output_0"], ["output"]),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [1, "phonemes"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 192, "frames"])]
    graph = helper.make_graph(nodes, "voice", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def test_the_halves_give_the_whole_with_the_noise_that_is_put_in(tmp_path: Path):
    (tmp_path / "voice.onnx").write_bytes(small_voice().SerializeToString())
    cut(tmp_path / "voice.onnx", tmp_path / "cut")
    noise = np.random.default_rng(0)
    duration_noise, prior_noise = noise.standard_normal((1, 2, 5), np.float32), noise.standard_normal((1, 192, 4), np.float32)
    inputs = {
        "input": np.ones((1, 5), np.int64),
        "input_lengths": np.array([5]),
        "scales": np.ones(3, np.float32),
        "duration_noise": duration_noise,
        "prior_noise": prior_noise,
    }
    frames = onnx_session(tmp_path / "cut" / "encoder.onnx").run(["frames"], inputs)[0]
    samples = onnx_session(tmp_path / "cut" / "decoder.onnx").run(["samples"], {"frames": frames})[0]
    repeated = np.take(prior_noise, np.arange(10) % 4, axis=2)
    assert np.allclose(frames, repeated * duration_noise.sum(), atol=1e-5)
    assert np.allclose(samples, 2 * frames)


def test_a_graph_that_is_no_piper_voice_is_refused(tmp_path: Path):
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", [value], [value])
    (tmp_path / "other.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(UnknownGraph, match=r"other\.onnx: expected a Piper graph"):
        cut(tmp_path / "other.onnx", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["other.onnx"]
