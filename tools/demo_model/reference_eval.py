"""Scores a model on question-answering rows with a plain NumPy reference of the engine's main job.

lazy: every document encoded alone, its keys turned to the slot it stands in. full: causal over the whole prompt.
misplaced: like lazy, but every document keeps the angles of position 0 (the control: questions on the order must fail).
A row counts when greedy decoding would give exactly the first answer. Needs python3-numpy and python3-regex.
"""
import argparse
import itertools
import json
import pathlib

import numpy as np

from reference_model import Model
from reference_tokenizer import Tokenizer

MODES = ("lazy", "full", "misplaced")


class Scorer:
    def __init__(self, folder, mode):
        self.mode = mode
        self.model = Model(folder)
        self.tokenizer = Tokenizer(folder / "tokenizer.json")
        self.template = json.loads((folder / "rag_template.json").read_text(encoding="utf-8"))
        self.documents = {}  # text: (ids, per layer unturned K and V)
        self.last_prompt = None  # (segments, context, length): rows of one context and order follow each other

    def is_right(self, row):
        """Whether the reference's greedy answer to a row is its first answer, stop token included."""
        template, encode = self.template, self.tokenizer.encode
        segments = [template["preamble"]] + [template["document"].format(**d) for d in row["documents"]]
        context, start = self.full_context(segments) if self.mode == "full" else self.block_context(segments)
        query = encode(template["query"].format(question=row["question"]))
        answer = encode(row["answers"][0]) + [self.tokenizer.special[template["stop"][0]]]
        ids = np.array(query + answer[:-1])
        hidden, _ = self.model.forward(ids, start + np.arange(len(ids)), context)
        best = self.model.logits(hidden[len(query) - 1:]).argmax(-1)
        return bool((best == answer).all())

    def full_context(self, segments):
        """Per layer (turned K, V) of the segments, each seeing all before it, and the position after them."""
        if self.last_prompt is None or self.last_prompt[0] != segments:
            ids = np.array(sum(map(self.tokenizer.encode, segments), []))
            positions = np.arange(len(ids))
            _, kv = self.model.forward(ids, positions)
            context = [(self.model.turn(k, positions), v) for k, v in kv]
            self.last_prompt = (segments, context, len(ids))
        return self.last_prompt[1:]

    def block_context(self, segments):
        """The same with every segment encoded alone."""
        start = 0
        parts = [[] for _ in range(self.model.num_layers)]
        for segment in segments:
            ids, kv = self.encode_alone(segment)
            positions = np.arange(len(ids)) + (start if self.mode == "lazy" else 0)
            start += len(ids)
            for layer, (k, v) in enumerate(kv):
                parts[layer].append((self.model.turn(k, positions), v))
        return [tuple(np.concatenate(tensors) for tensors in zip(*part)) for part in parts], start

    def encode_alone(self, text):
        if text not in self.documents:
            ids = self.tokenizer.encode(text)
            self.documents[text] = (ids, self.model.forward(np.array(ids), np.arange(len(ids)))[1])
        return self.documents[text]


def share(hits):
    return round(sum(hits) / len(hits), 4)


def score(folder, path, mode, rows):
    """The exact match over the first `rows` rows of a file (all when None), and by number of hops."""
    scorer = Scorer(folder, mode)
    hits = {}
    with open(path, encoding="utf-8") as file:
        for line in itertools.islice(file, rows):
            row = json.loads(line)
            hits.setdefault(row.get("hops"), []).append(scorer.is_right(row))
    return {
        "file": path.name,
        "mode": mode,
        "exact_match": share(sum(hits.values(), [])),
        "by_hops": {hops: [share(some), len(some)] for hops, some in sorted(hits.items())},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="folder of the model")
    parser.add_argument("file", type=pathlib.Path, help="rows as make_eval.py writes them")
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"of {', '.join(MODES)} (default: all)")
    parser.add_argument("--rows", type=int, help="score only the first ROWS rows")
    options = parser.parse_args()
    for mode in options.modes or MODES:
        if mode not in MODES:
            parser.error(f"unknown mode '{mode}': use {', '.join(MODES)}")
        print(json.dumps(score(options.model, options.file, mode, options.rows)), flush=True)


if __name__ == "__main__":
    main()
