"""The model of checkpoint format 1 in plain PyTorch: what every kernel is compared with.

How pictures, videos and recordings become patches is in `tests/front_end.py`.

Written to be read as the specification. One `Oracle` computes in any dtype, float64 included, one segment at a time
(`encode_texts`, `choose`) or as a padded batch (`forward`), which is differentiable and is what trains the default
checkpoint. The modules' parameters are named as the checkpoint's tensors are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

QUERY_TOKEN = 256
MODALITIES = ("text", "image", "video", "audio")
E4M3_LARGEST = 448.0
QUANTIZED = ("attention.qkv", "attention.output", "mlp.gate_up", "mlp.down")


@dataclass(frozen=True)
class Image:
    """How pictures become tokens."""

    patch_side: int = 16
    max_patches: int = 196

    @property
    def patch_width(self) -> int:
        return 3 * self.patch_side**2


@dataclass(frozen=True)
class Video:
    """How videos become tokens: `max_patches` is of a frame, `frames` of a tubelet."""

    patch_side: int = 16
    max_patches: int = 64
    frames: int = 2
    max_frames: int = 32
    frame_rate: float = 4.0

    @property
    def patch_width(self) -> int:
        return self.frames * 3 * self.patch_side**2


@dataclass(frozen=True)
class Audio:
    """How recordings become tokens."""

    sample_rate: int = 16000
    mel_bins: int = 80
    frames_per_token: int = 4

    @property
    def patch_width(self) -> int:
        return self.frames_per_token * self.mel_bins


@dataclass(frozen=True)
class Configuration:
    """What a checkpoint keeps as JSON under the metadata key `uform`, the format's number aside."""

    depth: int
    hidden: int
    head_dimension: int
    width: int
    dimensions: int
    context: int
    token_width: int = 0
    choice_temperature_groups: int = 0
    rotary_base: float = 10000.0
    norm_epsilon: float = 1e-6
    local_window: int = 0
    global_every: int = 0
    trained: list[str] = field(default_factory=lambda: ["text"])
    image: Image | None = None
    video: Video | None = None
    audio: Audio | None = None

    @classmethod
    def from_json(cls, text: str) -> Configuration:
        """What `to_json` writes."""
        values = json.loads(text)
        if values.pop("format") != 1:
            raise ValueError("not a checkpoint of format 1")
        for name, section in (("image", Image), ("video", Video), ("audio", Audio)):
            if name in values:
                values[name] = section(**values[name])
        return cls(**values)

    def to_json(self) -> str:
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"format": 1} | values)

    @property
    def heads(self) -> int:
        return self.hidden // self.head_dimension

    def window(self, block: int) -> int:
        """Tokens that a block attends each way; 0: all of the segment."""
        is_global = self.global_every > 0 and block % self.global_every == self.global_every - 1
        return 0 if is_global else self.local_window

    @staticmethod
    def width_for(hidden: int) -> int:
        """8/3 of `hidden`, rounded up to a multiple of 64."""
        return -(-8 * hidden // (3 * 64)) * 64


def rms_norm(rows: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """`rows / sqrt(mean(rows ** 2) + epsilon) * gain` over the last axis, in float32 at least."""
    wide = rows if rows.dtype == torch.float64 else rows.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (wide * scale * gain).to(rows.dtype)


def rotary_angles(positions: Tensor, head_dimension: int, base: float) -> Tensor:
    """Angles of every rotated pair: `[..., tokens, 3]` positions by time, row, column to `[..., tokens, pairs]`.

    Of the `head_dimension / 2` pairs, half rotate by time, a quarter by row, a quarter by column. Pair i of the n of
    an axis turns by `base ** (-i / n)` a step.
    """
    pairs = head_dimension // 2
    angles = []
    for axis, count in enumerate((pairs // 2, pairs // 4, pairs // 4)):
        exponents = torch.arange(count, dtype=torch.float64) / count
        angles.append(positions[..., axis, None].double() * base**-exponents)
    return torch.cat(angles, dim=-1)


def rotate(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turns the pairs (j, j + head_dimension / 2) of `[..., tokens, head_dimension]`."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, first * sines + second * cosines), dim=-1).to(heads.dtype)


def normalize(rows: Tensor) -> Tensor:
    """Rows of Euclidean length one; a zero row stays zero."""
    return functional.normalize(rows, dim=-1, eps=1e-12)


def matrix(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(rows, columns))


class Embed(nn.Module):
    """Token rows: one a byte, row 256 for the query and mask token, plus a row a modality."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.bytes = matrix(257, configuration.hidden)
        self.modality = matrix(len(MODALITIES), configuration.hidden)
        for name in MODALITIES[1:]:
            if section := getattr(configuration, name):
                self.register_parameter(name, matrix(configuration.hidden, section.patch_width))

    def patches(self, modality: str, patches: Tensor) -> Tensor:
        """`[..., patch width]` to `[..., hidden]`."""
        return functional.linear(patches, getattr(self, modality)) + self.modality[MODALITIES.index(modality)]

    def forward(self, tokens: Tensor) -> Tensor:
        """`[...]` integers to `[..., hidden]`."""
        return functional.embedding(tokens, self.bytes) + self.modality[MODALITIES.index("text")]


class Attention(nn.Module):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.configuration = configuration
        hidden, head_dimension = configuration.hidden, configuration.head_dimension
        self.norm = nn.Parameter(torch.ones(hidden))
        self.qkv = matrix(3 * hidden, hidden)
        self.query_norm = nn.Parameter(torch.ones(head_dimension))
        self.key_norm = nn.Parameter(torch.ones(head_dimension))
        self.output = matrix(hidden, hidden)

    def forward(self, states: Tensor, cosines: Tensor, sines: Tensor, mask: Tensor | None) -> Tensor:
        """`[batch, tokens, hidden]` to the same; `mask` `[batch or 1, 1, tokens, tokens]` is true where attended."""
        configuration = self.configuration
        epsilon = configuration.norm_epsilon
        batch, tokens, hidden = states.shape
        projected = functional.linear(rms_norm(states, self.norm, epsilon), self.qkv)
        by_head = projected.view(batch, tokens, 3, configuration.heads, configuration.head_dimension)
        queries, keys, values = by_head.permute(2, 0, 3, 1, 4)
        queries = rotate(rms_norm(queries, self.query_norm, epsilon), cosines, sines)
        keys = rotate(rms_norm(keys, self.key_norm, epsilon), cosines, sines)
        # softmax(queries @ keys.T / sqrt(head_dimension)) @ values
        attended = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return functional.linear(attended.transpose(1, 2).reshape(batch, tokens, hidden), self.output)


class Mlp(nn.Module):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.epsilon = configuration.norm_epsilon
        self.norm = nn.Parameter(torch.ones(configuration.hidden))
        self.gate_up = matrix(2 * configuration.width, configuration.hidden)
        self.down = matrix(configuration.hidden, configuration.width)

    def forward(self, states: Tensor) -> Tensor:
        """`[..., hidden]` to the same."""
        gate, up = functional.linear(rms_norm(states, self.norm, self.epsilon), self.gate_up).chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, self.down)


class Block(nn.Module):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.attention = Attention(configuration)
        self.mlp = Mlp(configuration)

    def forward(self, states: Tensor, cosines: Tensor, sines: Tensor, mask: Tensor | None) -> Tensor:
        states = states + self.attention(states, cosines, sines, mask)
        return states + self.mlp(states)


class Final(nn.Module):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.norm = nn.Parameter(torch.ones(configuration.hidden))


class Heads(nn.Module):
    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.embedding = matrix(configuration.dimensions, configuration.hidden)
        if configuration.token_width:
            self.tokens = matrix(configuration.token_width, configuration.hidden)
        if configuration.choice_temperature_groups:
            self.bytes = matrix(256, configuration.hidden)
            self.inverse_temperatures = nn.Parameter(torch.ones(configuration.choice_temperature_groups))


class Oracle(nn.Module):
    """An encoder of bytes; see the module's docstring."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        if configuration.head_dimension not in (32, 64) or configuration.hidden % configuration.head_dimension:
            raise ValueError("`head_dimension` is 32 or 64 and divides `hidden`")
        self.configuration = configuration
        self.embed = Embed(configuration)
        self.blocks = nn.ModuleList(Block(configuration) for _ in range(configuration.depth))
        self.final = Final(configuration)
        self.heads = Heads(configuration)

    @classmethod
    def random(cls, configuration: Configuration, seed: int) -> Oracle:
        """Weights that keep the states' scale through the depth, gains and temperatures that differ from one."""
        oracle = cls(configuration)
        generator = torch.Generator().manual_seed(seed)
        residual = (2 * configuration.depth) ** -0.5
        with torch.no_grad():
            for name, parameter in oracle.named_parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                if name.endswith("inverse_temperatures"):
                    parameter.copy_(torch.exp(0.5 * noise))
                elif parameter.dim() == 1:
                    parameter.copy_(1 + 0.1 * noise)
                elif name in ("embed.bytes", "embed.modality"):
                    parameter.copy_(noise if name == "embed.bytes" else 0.1 * noise)
                else:
                    into_residual = name.endswith(("attention.output", "mlp.down"))
                    parameter.copy_(noise * parameter.shape[1] ** -0.5 * (residual if into_residual else 1.0))
        return oracle

    @classmethod
    def from_checkpoint(cls, path: str | Path, dtype: torch.dtype = torch.float32, e4m3: bool = False) -> Oracle:
        """Reads a checkpoint of format 1; `e4m3` rounds the blocks' matrices as a load with that quantization does."""
        with safe_open(str(path), framework="pt") as file:
            configuration = Configuration.from_json(file.metadata()["uform"])
            names = file.keys()
            tensors = {name: file.get_tensor(name).to(dtype) for name in names}
        if e4m3:
            tensors |= {name: quantize_e4m3(tensors[name]) for name in names if name.endswith(QUANTIZED)}
        oracle = cls(configuration).to(dtype)
        oracle.load_state_dict(tensors)
        return oracle.eval()

    def save(self, path: str | Path) -> None:
        """Writes format 1: BF16, the inverse temperatures F32."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The file that `save` writes."""
        tensors = {}
        for name, tensor in self.state_dict().items():
            scalar = torch.float32 if name.endswith("inverse_temperatures") else torch.bfloat16
            tensors[name] = tensor.detach().to("cpu", scalar).contiguous()
        return save(tensors, metadata={"uform": self.configuration.to_json()})

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.bytes.dtype

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """States of a padded batch: `[batch, tokens]` integers to `[batch, tokens, hidden]`.

        `lengths` `[batch]`, at least 1 each, says how many tokens of a row exist; None: all. Rows of padding hold no
        meaning.
        """
        count = tokens.shape[1]
        positions = torch.zeros(count, 3, dtype=torch.int64)
        positions[:, 0] = torch.arange(count)
        exists = None if lengths is None else self.exists(lengths, count)[:, None, None, :]
        return self.transform(self.embed(tokens), positions, exists)

    def transform(self, states: Tensor, positions: Tensor, exists: Tensor | None = None) -> Tensor:
        """Embedded tokens `[batch, tokens, hidden]` at `[tokens, 3]` positions through the blocks and the last norm."""
        configuration = self.configuration
        count = states.shape[1]
        angles = rotary_angles(positions, configuration.head_dimension, configuration.rotary_base)
        wide = torch.float64 if self.dtype == torch.float64 else torch.float32
        cosines, sines = angles.cos().to(states.device, wide), angles.sin().to(states.device, wide)
        for index, block in enumerate(self.blocks):
            mask = exists
            if window := configuration.window(index):
                steps = torch.arange(count, device=states.device)
                near = (steps[:, None] - steps[None, :]).abs() <= window
                mask = near[None, None] if exists is None else near & exists
            states = block(states, cosines, sines, mask)
        return rms_norm(states, self.final.norm, configuration.norm_epsilon)

    @torch.no_grad()
    def encode_patches(self, modality: str, patches: Tensor) -> tuple[Tensor, Tensor]:
        """An item's patches `[times, rows, columns, patch width]`: its embedding, and states `[tokens, hidden]`."""
        times, rows, columns, _ = patches.shape
        grid = torch.meshgrid(torch.arange(times), torch.arange(rows), torch.arange(columns), indexing="ij")
        embedded = self.embed.patches(modality, patches.flatten(0, 2).to(self.dtype))
        states = self.transform(embedded[None], torch.stack(grid, -1).flatten(0, 2))
        return self.pool(states)[0], states[0]

    @staticmethod
    def exists(lengths: Tensor, count: int) -> Tensor:
        """`[batch, count]`, true for tokens before their row's length."""
        return torch.arange(count, device=lengths.device)[None, :] < lengths[:, None]

    def pool(self, states: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embeddings `[batch, dimensions]` of unit length: the head on the mean of the states that exist."""
        if lengths is None:
            mean = states.mean(1)
        else:
            weights = self.exists(lengths, states.shape[1]).to(states.dtype)
            mean = (states * weights[..., None]).sum(1) / lengths[:, None].to(states.dtype)
        return normalize(functional.linear(mean, self.heads.embedding))

    def token_vectors(self, states: Tensor) -> Tensor:
        """Late-interaction vectors `[..., token_width]` of unit length, one a state."""
        return normalize(functional.linear(states, self.heads.tokens))

    def byte_logits(self, query_states: Tensor, groups: Tensor) -> Tensor:
        """Logits `[batch, 256]` of the byte that answers, from the query tokens' states `[batch, hidden]`."""
        return functional.linear(query_states, self.heads.bytes) * self.heads.inverse_temperatures[groups][:, None]

    @torch.no_grad()
    def encode_texts(self, texts: Sequence[bytes]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """One segment at a time: embeddings `[texts, dimensions]`, states and token vectors `[tokens, ...]` of each.

        Without a token head the list of token vectors is empty.
        """
        configuration = self.configuration
        embeddings = torch.zeros(len(texts), configuration.dimensions, dtype=self.dtype)
        states, vectors = [], []
        for index, text in enumerate(texts):
            text = text[: configuration.context]
            if text:
                segment = self(torch.tensor([list(text)]))
                embeddings[index] = self.pool(segment)[0]
                states.append(segment[0])
            else:
                states.append(torch.zeros(0, configuration.hidden, dtype=self.dtype))
            if configuration.token_width:
                vectors.append(self.token_vectors(states[-1]))
        return embeddings, states, vectors

    @torch.no_grad()
    def choose(
        self, texts: Sequence[bytes], choices: Sequence[bytes], groups: Sequence[int] | None = None
    ) -> list[Tensor]:
        """Probabilities `[len(choices[i])]` of each text's legal bytes, in their order; group 0 by default."""
        probabilities = []
        for index, text in enumerate(texts):
            text = text[: self.configuration.context - 1]
            states = self(torch.tensor([[*text, QUERY_TOKEN]]))
            group = torch.tensor([0 if groups is None else groups[index]])
            logits = self.byte_logits(states[:, -1], group)[0]
            probabilities.append(torch.softmax(logits[list(choices[index])], dim=0))
        return probabilities


def quantize_e4m3(weights: Tensor) -> Tensor:
    """The round trip through E4M3 with a scale per output row, `max|row| / 448`; zero rows stay zero."""
    scales = weights.abs().amax(dim=1, keepdim=True).float() / E4M3_LARGEST
    scaled = weights.float() / torch.where(scales > 0, scales, torch.ones_like(scales))
    return (scaled.to(torch.float8_e4m3fn).float() * scales).to(weights.dtype)
