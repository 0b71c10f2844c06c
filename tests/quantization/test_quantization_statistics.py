from pathlib import Path

import numpy as np
import pytest
from quantization_models import model, node, small_network, small_samples

from anfbuild.errors import StepError
from anfbuild.graph.execute import Session
from anfbuild.quantization.histogram import BINS
from anfbuild.quantization.probes import SAMPLE, sample_stride
from anfbuild.quantization.statistics import Statistics, collect
from anfbuild.quantization.topology import analyse


@pytest.mark.parametrize("opset", [17, 18, 21])
def test_extremes_are_those_of_all_values_of_all_samples(opset: int) -> None:
    network, samples = small_network(opset), small_samples(11)
    found = collect(network, samples)
    names = analyse(network).observed
    assert list(found.tensors) == names
    session = Session(network, outputs=[name for name in names if name != "x"])
    values = [feeds | session.run(feeds) for _, feeds in samples]
    for name in names:
        tensor = found.tensors[name]
        assert tensor.low == min(v[name].min() for v in values), name
        assert tensor.high == max(v[name].max() for v in values), name
        total = sum(v[name].size for v in values)
        assert abs(tensor.counts.sum() - total) <= 0.1 * total, name


def test_a_falling_function_of_a_large_tensor_keeps_its_extremes_and_tails() -> None:
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("Mul", ["n", "minus"], ["m"]),
        node("Sub", ["one", "m"], ["s"]),
        node("Relu", ["s"], ["y"]),
    ]
    network = model(nodes, {"x": [1, 4, 64, 63]}, ["y"], {"minus": np.float32(-2), "one": np.float32(1)})
    x = np.random.default_rng(0).standard_t(3, (1, 4, 64, 63)).astype(np.float32)
    x[0, 0, :2] = 0  # a row whose extremes do not show the direction
    found = collect(network, [("a", {"x": x})])
    for name, values in {"n": -x, "m": 2 * x, "y": np.maximum(1 - 2 * x, 0)}.items():
        tensor = found.tensors[name]
        assert (tensor.low, tensor.high) == (values.min(), values.max())
        limit = np.quantile(values, 0.999)
        edge = int((limit - tensor.first_edge) / tensor.bin_width)
        assert 0.3 < tensor.counts[edge:].sum() / (values >= limit).sum() < 3


def test_memory_does_not_grow_with_the_number_of_samples() -> None:
    network = small_network()
    few, many = collect(network, small_samples(3)), collect(network, small_samples(40))
    assert all(len(tensor.counts) <= BINS for tensor in many.tensors.values())
    for name in few.tensors:
        assert many.tensors[name].low <= few.tensors[name].low
    assert many.samples == 40


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_input_is_refused_by_sample_and_tensor(bad: float) -> None:
    samples = small_samples(10)
    samples[9][1]["x"][0, 1, 7, 5] = bad
    with pytest.raises(StepError, match=r"sample sample9.*'x'"):
        collect(small_network(), samples)


@pytest.mark.parametrize("side", [8, 64])
def test_one_nan_made_inside_is_found_and_named(side: int) -> None:
    nodes = [node("Add", ["x", "x"], ["a"]), node("Sqrt", ["a"], ["s"]), node("Relu", ["s"], ["y"])]
    x = np.ones((1, 3, side, side), np.float32)
    x[0, 1, 3, 5] = -1
    with pytest.raises(StepError, match=r"sample0.*'s' holds NaN"):
        collect(model(nodes, {"x": [1, 3, side, side]}, ["y"]), [("sample0", {"x": x})])


def test_great_finite_values_are_no_fault() -> None:
    network = model([node("Neg", ["x"], ["y"])], {"x": [1, 3, 64, 64]}, ["y"])
    found = collect(network, [("a", {"x": np.full((1, 3, 64, 64), -3e38, np.float32)})])
    assert found.tensors["y"].high == np.float32(3e38)


def test_no_sample_is_an_error() -> None:
    with pytest.raises(StepError, match="no calibration sample"):
        collect(small_network(), [])


def test_the_sampling_stride_shares_no_factor_with_rows_or_channels() -> None:
    for shape in [(1, 24, 240, 240), (1, 3, 480, 480), (1, 384, 15, 15), (2, 1000), (1, 7, 11, 13, 17)]:
        size = int(np.prod(shape))
        stride = sample_stride(size, shape)
        assert -(-size // stride) <= SAMPLE
        assert all(np.gcd(stride, side) == 1 for side in shape if side > 1 and stride > 1)


def test_the_file_is_deterministic_and_reads_back(tmp_path: Path) -> None:
    network, samples = small_network(), small_samples(3)
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    collect(network, samples).save(first)
    collect(network, samples).save(second)
    assert first.read_bytes() == second.read_bytes()
    loaded, original = Statistics.load(first), collect(network, samples)
    assert loaded.samples == 3
    assert list(loaded.tensors) == list(original.tensors)
    for name, tensor in original.tensors.items():
        np.testing.assert_array_equal(loaded.tensors[name].counts, tensor.counts)
        assert loaded.tensors[name].low == tensor.low
        assert loaded.tensors[name].zeros == tensor.zeros


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "statistics.npz"
    path.write_bytes(content)
    with pytest.raises(StepError, match=r"statistics\.npz"):
        Statistics.load(path)


def test_another_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "statistics.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(StepError, match="not a statistics file"):
        Statistics.load(path)
