"""The Llama architecture in NumPy (float32, angles in float64), as plainly as it can be written."""
import json
import pathlib
import struct

import numpy as np


def load_bfloat16(path):
    """The tensors of a safetensors file, widened to float32."""
    blob = pathlib.Path(path).read_bytes()
    header_bytes = struct.unpack("<Q", blob[:8])[0]
    data = blob[8 + header_bytes:]
    tensors = {}
    for name, entry in json.loads(blob[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        bits = np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16
        tensors[name] = bits.view(np.float32).reshape(entry["shape"])
    return tensors


def norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


class Model:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.num_layers = config["num_hidden_layers"]
        self.num_heads = config["num_attention_heads"]
        self.num_kv_heads = config["num_key_value_heads"]
        self.head_dim = config["head_dim"]
        self.epsilon = config["rms_norm_eps"]
        self.frequencies = config["rope_theta"]**(-np.arange(0, self.head_dim, 2) / self.head_dim)
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        self.weights = {}
        for shard in sorted(set(index["weight_map"].values())):
            self.weights.update(load_bfloat16(folder / shard))
        for name, weight in self.weights.items():
            if name.endswith("proj.weight"):
                self.weights[name] = np.ascontiguousarray(weight.T)

    def turn(self, x, positions):
        """RoPE: x [num_tokens, heads, head_dim] turned to positions [num_tokens]."""
        angles = positions[:, None] * self.frequencies
        cos = np.cos(angles).astype(np.float32)[:, None]
        sin = np.sin(angles).astype(np.float32)[:, None]
        left, right = x[..., :self.head_dim // 2], x[..., self.head_dim // 2:]
        return np.concatenate([left * cos - right * sin, right * cos + left * sin], -1)

    def forward(self, ids, positions, context=None):
        """Hidden states [num_tokens, hidden] and per layer (unturned K, V), each [num_tokens, kv_heads, head_dim].

        Every token sees the context, per layer (turned K, V), and the tokens up to itself.
        """
        n = len(ids)
        x = self.weights["model.embed_tokens.weight"][ids]
        causal = np.where(np.tril(np.ones((n, n), bool)), 0, -1e30).astype(np.float32)
        kv = []
        for layer in range(self.num_layers):
            y = norm(x, self._weight(layer, "input_layernorm"), self.epsilon)
            q = (y @ self._weight(layer, "self_attn.q_proj")).reshape(n, self.num_heads, self.head_dim)
            k = (y @ self._weight(layer, "self_attn.k_proj")).reshape(n, self.num_kv_heads, self.head_dim)
            v = (y @ self._weight(layer, "self_attn.v_proj")).reshape(n, self.num_kv_heads, self.head_dim)
            kv.append((k, v))
            attention = self._attend(self.turn(q, positions), self.turn(k, positions), v, causal,
                                     context[layer] if context else None)
            x = x + attention.reshape(n, -1) @ self._weight(layer, "self_attn.o_proj")
            y = norm(x, self._weight(layer, "post_attention_layernorm"), self.epsilon)
            gate = silu(y @ self._weight(layer, "mlp.gate_proj"))
            x = x + (gate * (y @ self._weight(layer, "mlp.up_proj"))) @ self._weight(layer, "mlp.down_proj")
        return x, kv

    def logits(self, hidden):
        weights = self.weights
        return norm(hidden, weights["model.norm.weight"], self.epsilon) @ weights["model.embed_tokens.weight"].T

    def _attend(self, q, k, v, causal, context):
        out = np.empty(q.shape, np.float32)
        for head in range(self.num_heads):
            kv_head = head // (self.num_heads // self.num_kv_heads)
            values = v[:, kv_head]
            scores = q[:, head] @ k[:, kv_head].T / self.head_dim**0.5 + causal
            if context:
                before = q[:, head] @ context[0][:, kv_head].T / self.head_dim**0.5
                scores = np.concatenate([before, scores], 1)
                values = np.concatenate([context[1][:, kv_head], values])
            out[:, head] = softmax(scores) @ values
        return out

    def _weight(self, layer, name):
        return self.weights[f"model.layers.{layer}.{name}.weight"]
