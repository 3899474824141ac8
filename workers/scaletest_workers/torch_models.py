"""The models of the PyTorch benchmark, by their published layers, with random weights.

Imported by torch_child alone, since importing torch takes long.

AlexNet as Krizhevsky 2014 has it, ResNet-50 after He et al. 2015 (the stride in the 3x3
convolution, as everybody runs it), and a Llama of 8 layers (Touvron et al. 2023: RMS norm, rotary
positions, gated feed-forward).
"""

from typing import Any

import torch
from torch import Tensor, nn

CLASSES = 1000
VOCABULARY = 32000
# Of the language model: numbers by which it describes a token, layers, and heads of its attention.
WIDTH = 512
LAYERS = 8
HEADS = 8
# Pixels along a side of an image, and tokens of a text.
IMAGE_SIDE = 224
TOKENS = 32


def alexnet() -> nn.Module:
    """Build five convolutions and three full layers."""
    shapes = [
        (3, 64, 11, 4, 2),
        (64, 192, 5, 1, 2),
        (192, 384, 3, 1, 1),
        (384, 256, 3, 1, 1),
        (256, 256, 3, 1, 1),
    ]
    layers: list[nn.Module] = []
    for number, (inputs, outputs, side, stride, padding) in enumerate(shapes):
        layers += [nn.Conv2d(inputs, outputs, side, stride, padding), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(3, 2)] if number in (0, 1, 4) else []
    full = [
        *(nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True)),
        *(nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True)),
        nn.Linear(4096, CLASSES),
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(6), nn.Flatten(), *full)


class Bottleneck(nn.Module):
    """Convolutions of 1x1, 3x3 and 1x1, and a way around them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, outputs, 1, 1),
        )
        self.around = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(*_convolution(inputs, outputs, 1, stride))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Add what comes through the convolutions to what goes around them."""
        return torch.relu(self.body(x) + self.around(x))


def _convolution(inputs: int, outputs: int, side: int, stride: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False),
        nn.BatchNorm2d(outputs),
    ]


def resnet50() -> nn.Module:
    """Build 3, 4, 6 and 3 bottlenecks."""
    blocks: list[nn.Module] = []
    inputs = 64
    for number, count in enumerate((3, 4, 6, 3)):
        width = 64 * 2**number
        for index in range(count):
            blocks.append(Bottleneck(inputs, width, 2 if index == 0 and number else 1))
            inputs = 4 * width
    head = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(
        *head, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)
    )


class Layer(nn.Module):
    """Attention that looks back, then a gated feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        inner = 256 * ((8 * WIDTH // 3 + 255) // 256)
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.mix = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, inner, bias=False)
        self.up = nn.Linear(WIDTH, inner, bias=False)
        self.down = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Return x after this layer; it has the dimensions batch, tokens, width."""
        # attention: each token looks at those before it, with several heads
        batch, tokens, _ = x.shape
        queries, keys, values = (
            self.mix(self.norms[0](x))
            .view(batch, tokens, 3, HEADS, WIDTH // HEADS)
            .permute(2, 0, 3, 1, 4)
        )
        attended = nn.functional.scaled_dot_product_attention(
            _rotate(queries, turn), _rotate(keys, turn), values, is_causal=True
        )
        x = x + self.out(attended.transpose(1, 2).reshape(batch, tokens, WIDTH))
        # feed-forward: one half decides how much of the other half passes
        y = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def _rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Tell each token its position: turn pairs of its numbers by angles that grow with it."""
    cosine, sine = turn
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


class Llama(nn.Module):
    """A language model: from tokens to what may come next."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        half = WIDTH // HEADS
        angles = torch.outer(torch.arange(TOKENS), 10000.0 ** (-torch.arange(0, half, 2) / half))
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the score of each word of the vocabulary as the next one, by batch."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, (self.cosine, self.sine))
        return self.head(self.norm(x)[:, -1])


def build(name: str) -> nn.Module:
    """Build the model of that name, on the CPU."""
    builders: dict[str, Any] = {"alexnet": alexnet, "resnet50": resnet50, "llama": Llama}
    return builders[name]()


def sample(name: str, batch: int) -> Tensor:
    """Make random input of that model."""
    if name == "llama":
        return torch.randint(0, VOCABULARY, (batch, TOKENS))
    return torch.randn(batch, 3, IMAGE_SIDE, IMAGE_SIDE)
