#!/usr/bin/env python3
"""Makes tiny/smollm3-unturned: tiny/smollm3 with its middle layer's Q and K not turned.

The logits are those of a plain decoder in float64, written here. That decoder is first held to transformers' logits of
tiny/smollm3, all of whose layers are turned.

    tests/goldens/unturned_layers.py
"""
import json
import math
import operator
import pathlib
import shutil
import struct
import sys

TINY = pathlib.Path(__file__).parent / "tiny"
FORMATS = {"F32": "f", "I32": "i"}


def read_tensors(path):
    """{name: (shape, values)}"""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            count = (end - begin) // 4
            values = struct.unpack_from(f"<{count}{FORMATS[entry['dtype']]}", data, 8 + size + begin)
            tensors[name] = (entry["shape"], values)
    return tensors


def write_tensors(path, tensors):
    """tensors: {name: (dtype, shape, values)}"""
    header, body = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(packed)]}
        body += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def dot(a, b):
    return sum(map(operator.mul, a, b))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def turned(head, position, theta):
    half = len(head) // 2
    out = list(head)
    for j in range(half):
        angle = position * theta ** (-j / half)
        c, s = math.cos(angle), math.sin(angle)
        out[j] = head[j] * c - head[half + j] * s
        out[half + j] = head[half + j] * c + head[j] * s
    return out


class Model:
    def __init__(self, folder, turned_layers):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_tensors(folder / "model.safetensors")
        self.turned_layers = turned_layers
        self.head_dim = self.config["hidden_size"] // self.config["num_attention_heads"]

    def matrix(self, name):
        (_, cols), values = self.tensors[name]
        return [values[i:i + cols] for i in range(0, len(values), cols)]

    def norm(self, name, x):
        weight = self.tensors[name][1]
        factor = 1 / math.sqrt(dot(x, x) / len(x) + self.config["rms_norm_eps"])
        return [a * factor * w for a, w in zip(x, weight)]

    def heads(self, layer, which, x):
        y = times(self.matrix(f"model.layers.{layer}.self_attn.{which}_proj.weight"), x)
        return [y[i:i + self.head_dim] for i in range(0, len(y), self.head_dim)]

    def attend(self, layer, rows, sees):
        theta = self.config["rope_parameters"]["rope_theta"]
        is_turned = self.turned_layers[layer]

        def turn(heads, position):
            return [turned(head, position, theta) for head in heads] if is_turned else heads

        q = [turn(self.heads(layer, "q", x), p) for p, x in enumerate(rows)]
        k = [turn(self.heads(layer, "k", x), p) for p, x in enumerate(rows)]
        v = [self.heads(layer, "v", x) for x in rows]
        group = len(q[0]) // len(k[0])
        outputs = []
        for p in range(len(rows)):
            visible = [i for i in range(p + 1) if sees(p, i)]
            row = []
            for h, query in enumerate(q[p]):
                scores = [dot(query, k[i][h // group]) / math.sqrt(self.head_dim) for i in visible]
                weights = [math.exp(score - max(scores)) for score in scores]
                for d in range(self.head_dim):
                    row.append(sum(w * v[i][h // group][d] for w, i in zip(weights, visible)) / sum(weights))
            outputs.append(row)
        return outputs

    def logits(self, token_ids, sees):
        embedding = self.matrix("model.embed_tokens.weight")
        rows = [list(embedding[token]) for token in token_ids]
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            o = self.matrix(name + "self_attn.o_proj.weight")
            gate, up, down = (self.matrix(f"{name}mlp.{part}_proj.weight") for part in ("gate", "up", "down"))
            normed = [self.norm(name + "input_layernorm.weight", x) for x in rows]
            attended = self.attend(layer, normed, sees)
            rows = [list(map(operator.add, x, times(o, y))) for x, y in zip(rows, attended)]
            for i, x in enumerate(rows):
                y = self.norm(name + "post_attention_layernorm.weight", x)
                gated = [g / (1 + math.exp(-g)) * u for g, u in zip(times(gate, y), times(up, y))]
                rows[i] = list(map(operator.add, x, times(down, gated)))
        head = self.matrix("lm_head.weight")
        return [value for x in rows for value in times(head, self.norm("model.norm.weight", x))]


def difference(actual, expected):
    return max(abs(a - b) for a, b in zip(actual, expected)) / max(map(abs, expected))


def main():
    source, target = TINY / "smollm3", TINY / "smollm3-unturned"
    golden = read_tensors(source / "golden.safetensors")
    ids, segments = golden["input_ids"][1], golden["segment_of_token"][1]
    query = max(segments)
    masks = {
        "full_logits": lambda p, i: True,
        "block_logits": lambda p, i: segments[p] in (query, segments[i]),
    }
    for name, sees in masks.items():
        error = difference(Model(source, [True] * 3).logits(ids, sees), golden[name][1])
        print(f"{name} of {source.name}: {error:.1e} of the largest from transformers'")
        if not error < 1e-5:
            sys.exit("this decoder does not do what transformers does")

    target.mkdir(exist_ok=True)
    shutil.copyfile(source / "model.safetensors", target / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    config["no_rope_layers"] = [1, 0, 1]
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = {name: ("I32", [len(ids)], golden[name][1]) for name in ("input_ids", "segment_of_token")}
    for name, sees in masks.items():
        values = Model(target, [True, False, True]).logits(ids, sees)
        print(f"{name}: {difference(values, golden[name][1]):.1e} of the largest from those of turned layers")
        tensors[name] = ("F32", golden[name][0], values)
    write_tensors(target / "golden.safetensors", tensors)


if __name__ == "__main__":
    main()
