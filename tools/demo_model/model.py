"""The demo model in PyTorch: Llama architecture, with an attention mask that keeps documents apart."""
import glob
import json
import math

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from training_data import FIRST_QUESTION

SHARD_BYTES = 14.5e6


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config["hidden_size"]
        self.num_heads = config["num_attention_heads"]
        self.num_kv_heads = config["num_key_value_heads"]
        self.head_dim = hidden // self.num_heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, self.num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def turn(self, x, cos, sin):
        half = self.head_dim // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def forward(self, x, cos, sin, mask):
        batch, length, hidden = x.shape
        q = self.q_proj(x).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.num_kv_heads, self.head_dim).transpose(1, 2)
        q = self.turn(q, cos, sin).to(v.dtype)
        k = self.turn(k, cos, sin).to(v.dtype)
        group = self.num_heads // self.num_kv_heads
        k = k.repeat_interleave(group, 1)
        v = v.repeat_interleave(group, 1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, hidden))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])
        self.self_attn = Attention(config)
        self.mlp = MLP(config)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LanguageModel(nn.Module):
    """Parameters bear the names of a Hugging Face checkpoint, less its "model." in front."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.norm = RMSNorm(config["hidden_size"])
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        residual_std = 0.02 / math.sqrt(2 * config["num_hidden_layers"])
        for layer in self.layers:
            nn.init.normal_(layer.self_attn.o_proj.weight, std=residual_std)
            nn.init.normal_(layer.mlp.down_proj.weight, std=residual_std)

    def forward(self, tokens, positions, mask):
        """Hidden states [batch, length, hidden]; mask [batch, 1, length, length] is true where a token is seen."""
        head_dim = self.config["hidden_size"] // self.config["num_attention_heads"]
        steps = torch.arange(0, head_dim, 2, device=tokens.device).float()
        frequencies = 1 / (self.config["rope_theta"]**(steps / head_dim))
        angles = positions[:, None, :, None].float() * frequencies
        angles = torch.cat([angles, angles], -1)
        cos, sin = angles.cos(), angles.sin()
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.norm(x)


def make_mask(segment, full):
    """What each token sees: earlier tokens of its segment; questions see all documents; rows of `full` see them too.

    segment [batch, length] as in training_data; full [batch]: whether documents see the documents before them.
    """
    length = segment.shape[1]
    viewer, seen = segment[:, :, None], segment[:, None, :]
    causal = torch.ones(length, length, dtype=torch.bool, device=segment.device).tril()
    seen_is_document = (seen >= 0) & (seen < FIRST_QUESTION)
    visible = (viewer == seen) | (seen_is_document & ((viewer >= FIRST_QUESTION) | full[:, None, None]))
    return (visible & causal)[:, None]


def export(model, folder):
    """Writes config.json and bfloat16 shards in the Hugging Face layout."""
    names = [name for name in model.state_dict() if name.startswith("layers.")]
    tensors = {}
    for name in ["embed_tokens.weight", "norm.weight", *names]:
        weight = model.state_dict()[name]
        tensors["model." + name] = weight.detach().to(torch.bfloat16).contiguous().cpu()
    shards, size = [{}], 0
    for name, tensor in tensors.items():
        tensor_bytes = tensor.numel() * 2
        if size + tensor_bytes > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor_bytes
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        weight_map.update({name: file for name in shard})
    total_size = sum(tensor.numel() * 2 for tensor in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(model.config, indent=2), encoding="utf-8")


def load(model, folder):
    """Takes the weights from the safetensors of a folder."""
    weights = {}
    for file in sorted(glob.glob(f"{folder}/*.safetensors")):
        weights.update(load_file(file))
    model.load_state_dict({name.removeprefix("model."): weight.float() for name, weight in weights.items()})
