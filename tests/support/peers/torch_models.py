"""Networks as torchvision, timm and transformers write them, small; they need the package torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

__all__ = ["MODELS", "SmallModel"]

CLASSES = 10


class ResidualBlock(nn.Module):
    """As torchvision's: one ReLU of three places, additions in place."""

    def __init__(self, src: int, dst: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(src, dst, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(dst)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(dst, dst, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(dst)
        self.downsample: Any = None
        if stride > 1 or src != dst:
            shortcut = nn.Conv2d(src, dst, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(dst))

    def forward(self, x: Any) -> Any:
        same = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += same
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(ResidualBlock(16, 16), ResidualBlock(16, 16))
        self.layer2 = nn.Sequential(ResidualBlock(16, 32, 2), ResidualBlock(32, 32))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(x, 1))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // 4, 1)
        self.fc2 = nn.Conv2d(channels // 4, channels, 1)
        self.activation = nn.ReLU()
        self.scale_activation = nn.Hardsigmoid()

    def forward(self, x: Any) -> Any:
        scale = self.fc2(self.activation(self.fc1(self.avgpool(x))))
        return self.scale_activation(scale) * x


def norm_behind(*layer: Any, **options: Any) -> tuple[Any, Any]:
    return nn.Conv2d(*layer, bias=False, **options), nn.BatchNorm2d(layer[1], eps=0.001)


class InvertedResidual(nn.Module):
    def __init__(self, src: int, wide: int, dst: int, kernel: int, stride: int, kind: Any) -> None:
        super().__init__()
        self.block = nn.Sequential(
            *norm_behind(src, wide, 1),
            kind(inplace=True),
            *norm_behind(wide, wide, kernel, stride, kernel // 2, groups=wide),
            kind(inplace=True),
            SqueezeExcitation(wide),
            *norm_behind(wide, dst, 1),
        )
        self.use_res_connect = stride == 1 and src == dst

    def forward(self, x: Any) -> Any:
        result = self.block(x)
        if self.use_res_connect:
            result += x
        return result


class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *norm_behind(3, 16, 3, 2, 1),
            nn.Hardswish(),
            InvertedResidual(16, 48, 24, 3, 2, nn.ReLU),
            InvertedResidual(24, 72, 24, 5, 1, nn.Hardswish),
            *norm_behind(24, 96, 1),
            nn.Hardswish(),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(96, 64),
            nn.Hardswish(inplace=True),
            nn.Dropout(0.2, inplace=True),
            nn.Linear(64, CLASSES),
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class Attention(nn.Module):
    """As timm's: one layer for queries, keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        parts = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        x = functional.scaled_dot_product_attention(query, key, value)
        return self.proj(x.transpose(1, 2).reshape(n, length, width))


class VisionBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, 4)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) / 2)
        self.pos_embed = nn.Parameter(torch.randn(1, 17, width) / 2)
        self.blocks = nn.Sequential(VisionBlock(width), VisionBlock(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class Encoder(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 128, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        x = self.encoder(x)
        attended, _ = self.attention(x, x, x, need_weights=False)
        return self.head(x + attended)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.lstm = nn.LSTM(32, 48, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, 7)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.lstm(self.embedding(tokens))[0])


def twice_convolved(src: int, dst: int) -> Any:
    first, second = (norm_behind(each, dst, 3, padding=1) for each in (src, dst))
    return nn.Sequential(*first, nn.ReLU(inplace=True), *second, nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = twice_convolved(3, 16), twice_convolved(16, 32)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.merged = twice_convolved(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Any) -> Any:
        first = self.down1(x)
        below = self.up(self.down2(self.pool(first)))
        return self.out(self.merged(torch.cat([first, below], 1)))


class Bert(nn.Module):
    """As transformers writes it: called by names, with a mask, labels that may be left out."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(99, width), nn.Embedding(32, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width, eps=1e-12) for _ in range(3)])
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dense, self.pooler = nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.classifier = nn.Linear(width, 3)

    def forward(self, input_ids: Any, attention_mask: Any = None, labels: Any = None) -> Any:
        n, length = input_ids.shape
        x = self.norms[0](self.words(input_ids) + self.places(torch.arange(length)[None]))
        mask = 1.0 - attention_mask[:, None, None, :].to(x.dtype)
        mask = mask * torch.finfo(x.dtype).min

        def split(y: Any) -> Any:
            return y.view(n, length, self.heads, -1).transpose(1, 2)

        query, key, value = (split(each(x)) for each in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / query.shape[-1] ** 0.5 + mask
        attended = torch.matmul(scores.softmax(-1), value).transpose(1, 2).reshape(n, length, -1)
        x = self.norms[1](x + self.dense(attended))
        x = self.norms[2](x + self.narrow(functional.gelu(self.wide(x))))
        logits = self.classifier(torch.tanh(self.pooler(x[:, 0])))
        if labels is None:
            return {"logits": logits}
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


class SmallModel(NamedTuple):
    """A network and inputs for it.

    Attributes
    ----------
    make : callable
        The network, with weights that torch draws.
    draw : callable
        A batch of so many samples.
    layers : int
        How many layers have constant weights, and are INT8 when it is quantized.
    """

    make: Callable[[], Any]
    draw: Callable[[int], Any]
    layers: int

    def ready(self, seed: int = 0) -> Any:
        """Return the network with statistics in its batch norms, in its evaluation mode."""
        torch.manual_seed(seed)
        model = self.make()
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm2d):
                count = norm.num_features
                norm.running_mean = torch.randn(count) / 10
                norm.running_var = torch.rand(count) + 0.5
                norm.weight.data, norm.bias.data = torch.rand(count) + 0.5, torch.randn(count) / 10
        return model.eval()


def images(n: int) -> Any:
    return torch.randn(n, 3, 32, 32)


def text(n: int) -> dict[str, Any]:
    mask = torch.ones(n, 11, dtype=torch.int64)
    return {"input_ids": torch.randint(0, 99, (n, 11)), "attention_mask": mask}


MODELS = {
    "resnet": SmallModel(ResNet, images, 11),
    "mobilenet_v3": SmallModel(MobileNetV3, images, 14),
    "vision_transformer": SmallModel(VisionTransformer, images, 10),
    "encoder": SmallModel(Encoder, lambda n: torch.randn(n, 12, 64), 11),
    "tagger": SmallModel(Tagger, lambda n: torch.randint(0, 50, (n, 9)), 1),
    "unet": SmallModel(UNet, images, 8),
    "bert": SmallModel(Bert, text, 8),
}
