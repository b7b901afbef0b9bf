#!/usr/bin/env python3
"""Makes goldens that transformers has not given, with a plain decoder in float64, written here:

    tiny/smollm3-unturned                     tiny/smollm3 with its middle layer's Q and K not turned
    tiny/gemma3-full                          tiny/gemma3 with a middle layer that sees everything, whose RoPE is scaled, and a
                                              window shorter than its documents
    tiny/{mistral-window,gemma2,gemma3}/alone.safetensors
                                              block_logits: documents alone, where a window counts positions of the prompt

That decoder is first held to all logits that transformers gave for these models.

    tests/goldens/own_goldens.py
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


def turned(head, position, frequencies):
    half = len(head) // 2
    out = list(head)
    for j, frequency in enumerate(frequencies):
        c, s = math.cos(position * frequency), math.sin(position * frequency)
        out[j] = head[j] * c - head[half + j] * s
        out[half + j] = head[half + j] * c + head[j] * s
    return out


def silu(x):
    return x / (1 + math.exp(-x))


def gelu(x):
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def capped(x, cap):
    return cap * math.tanh(x / cap) if cap else x


class Model:
    """Llama's form, and what SmolLM 3, Mistral, Gemma 2 and Gemma 3 add to it."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_tensors(folder / "model.safetensors")
        self.is_gemma = self.config["model_type"].startswith("gemma")
        self.num_layers = self.config["num_hidden_layers"]
        self.head_dim = self.config.get("head_dim") or self.config["hidden_size"] // self.config["num_attention_heads"]

    def is_local(self, layer):
        if not self.config.get("sliding_window"):
            return False
        types = self.config.get("layer_types")
        return types is None or types[layer] == "sliding_attention"

    def frequencies(self, layer):
        """None: Q and K are not turned."""
        if not self.config.get("no_rope_layers", [1] * self.num_layers)[layer]:
            return None
        rope = self.config["rope_parameters"]
        if "full_attention" in rope:
            rope = rope["sliding_attention" if self.is_local(layer) else "full_attention"]
        slower = rope["factor"] if rope["rope_type"] == "linear" else 1
        half = self.head_dim // 2
        return [rope["rope_theta"] ** (-j / half) / slower for j in range(half)]

    def matrix(self, name):
        (_, cols), values = self.tensors[name]
        return [values[i:i + cols] for i in range(0, len(values), cols)]

    def norm(self, name, x):
        weight = self.tensors[name][1]
        offset = 1 if self.is_gemma else 0
        factor = 1 / math.sqrt(dot(x, x) / len(x) + self.config["rms_norm_eps"])
        return [a * factor * (w + offset) for a, w in zip(x, weight)]

    def heads(self, layer, which, x):
        name = f"model.layers.{layer}.self_attn.{which}_"
        y = times(self.matrix(name + "proj.weight"), x)
        heads = [y[i:i + self.head_dim] for i in range(0, len(y), self.head_dim)]
        return [self.norm(name + "norm.weight", h) for h in heads] if name + "norm.weight" in self.tensors else heads

    def attend(self, layer, rows, sees):
        frequencies = self.frequencies(layer)
        window = self.config["sliding_window"] if self.is_local(layer) else len(rows)
        cap = self.config.get("attn_logit_softcapping")
        root = math.sqrt(self.config.get("query_pre_attn_scalar", self.head_dim))

        def turn(heads, position):
            return [turned(head, position, frequencies) for head in heads] if frequencies else heads

        q = [turn(self.heads(layer, "q", x), p) for p, x in enumerate(rows)]
        k = [turn(self.heads(layer, "k", x), p) for p, x in enumerate(rows)]
        v = [self.heads(layer, "v", x) for x in rows]
        group = len(q[0]) // len(k[0])
        outputs = []
        for p in range(len(rows)):
            visible = [i for i in range(p + 1) if sees(p, i) and i > p - window]
            row = []
            for h, query in enumerate(q[p]):
                scores = [capped(dot(query, k[i][h // group]) / root, cap) for i in visible]
                weights = [math.exp(score - max(scores)) for score in scores]
                for d in range(self.head_dim):
                    row.append(sum(w * v[i][h // group][d] for w, i in zip(weights, visible)) / sum(weights))
            outputs.append(row)
        return outputs

    def mlp(self, layer, x):
        gate, up, down = (self.matrix(f"model.layers.{layer}.mlp.{part}_proj.weight") for part in ("gate", "up", "down"))
        activation = gelu if self.is_gemma else silu
        return times(down, [activation(g) * u for g, u in zip(times(gate, x), times(up, x))])

    def run_layer(self, layer, rows, sees):
        name = f"model.layers.{layer}."
        o = self.matrix(name + "self_attn.o_proj.weight")
        attended = self.attend(layer, [self.norm(name + "input_layernorm.weight", x) for x in rows], sees)
        before_mlp = "pre_feedforward" if self.is_gemma else "post_attention"
        out = []
        for x, y in zip(rows, attended):
            y = times(o, y)
            if self.is_gemma:
                y = self.norm(name + "post_attention_layernorm.weight", y)
            x = list(map(operator.add, x, y))
            y = self.mlp(layer, self.norm(f"{name}{before_mlp}_layernorm.weight", x))
            if self.is_gemma:
                y = self.norm(name + "post_feedforward_layernorm.weight", y)
            out.append(list(map(operator.add, x, y)))
        return out

    def logits(self, token_ids, sees):
        embedding = self.matrix("model.embed_tokens.weight")
        scale = math.sqrt(self.config["hidden_size"]) if self.is_gemma else 1
        rows = [[scale * value for value in embedding[token]] for token in token_ids]
        for layer in range(self.num_layers):
            rows = self.run_layer(layer, rows, sees)
        head = embedding if self.config["tie_word_embeddings"] else self.matrix("lm_head.weight")
        cap = self.config.get("final_logit_softcapping")
        return [capped(value, cap) for x in rows for value in times(head, self.norm("model.norm.weight", x))]


def difference(actual, expected):
    return max(abs(a - b) for a, b in zip(actual, expected)) / max(map(abs, expected))


class Prompt:
    """Documents and a question, and who sees whom."""

    def __init__(self, golden, segments):
        self.ids, self.segments = golden["input_ids"][1], segments
        query = max(segments)
        self.masks = {
            "full_logits": lambda p, i: True,
            "block_logits": lambda p, i: segments[p] in (query, segments[i]),
        }

    def logits(self, model, name):
        return model.logits(self.ids, self.masks[name])

    def lists(self, *names):
        values = {"input_ids": self.ids, "segment_of_token": self.segments}
        return {name: ("I32", [len(values[name])], values[name]) for name in names}


def hold_to_transformers(name, prompt, golden):
    for logits in prompt.masks:
        if logits in golden:
            error = difference(prompt.logits(Model(TINY / name), logits), golden[logits][1])
            print(f"{logits} of {name}: {error:.1e} of the largest from transformers'")
            if not error < 1e-5:
                sys.exit("this decoder does not do what transformers does")


def make_changed(source, target, prompt, changes):
    """Of the source's weights under another config."""
    folder = TINY / target
    folder.mkdir(exist_ok=True)
    shutil.copyfile(TINY / source / "model.safetensors", folder / "model.safetensors")
    config = json.loads((TINY / source / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = prompt.lists("input_ids", "segment_of_token")
    for logits in prompt.masks:
        values = prompt.logits(Model(folder), logits)
        others = prompt.logits(Model(TINY / source), logits)
        print(f"{logits} of {target}: {difference(values, others):.1e} of the largest from those of {source}")
        tensors[logits] = ("F32", [len(prompt.ids), config["vocab_size"]], values)
    write_tensors(folder / "golden.safetensors", tensors)


def make_alone(name, prompt):
    model = Model(TINY / name)
    tensors = prompt.lists("segment_of_token")
    tensors["block_logits"] = ("F32", [len(prompt.ids), model.config["vocab_size"]], prompt.logits(model, "block_logits"))
    write_tensors(TINY / name / "alone.safetensors", tensors)


def main():
    segments = read_tensors(TINY / "smollm3" / "golden.safetensors")["segment_of_token"][1]
    prompts = {}
    for name in ("smollm3", "mistral-window", "gemma2", "gemma3"):
        golden = read_tensors(TINY / name / "golden.safetensors")
        prompts[name] = Prompt(golden, segments)
        hold_to_transformers(name, prompts[name], golden)
    make_changed("smollm3", "smollm3-unturned", prompts["smollm3"], {"no_rope_layers": [1, 0, 1]})
    make_changed("gemma3", "gemma3-full", prompts["gemma3"], {
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "sliding_window": 12,
    })
    for name in ("mistral-window", "gemma2", "gemma3"):
        make_alone(name, prompts[name])


if __name__ == "__main__":
    main()
