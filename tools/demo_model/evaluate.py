"""Teacher-forced exact match of the PyTorch model on evaluation batches."""
import json
import random
import sys
from collections import defaultdict

import numpy as np
import torch
import torch.nn.functional as F

from model import make_mask
from training_data import FIRST_QUESTION, assemble

# full and block: how documents see each other. naive: block, but every document keeps the positions it has alone.
MODES = ("full", "block", "naive")
EVALUATION_FIRST_SEED = 5_000_000_000
BATCHES = 6
ROWS_PER_BATCH = 64


def evaluation_batches(encoder, device):
    """Batches of (tokens, segment, position, weight, hops), each [rows, length], the same in every run."""
    batches = []
    for batch in range(BATCHES):
        rows = []
        for index in range(ROWS_PER_BATCH):
            number = batch * 1000 + index
            row = assemble(random.Random(number), encoder, EVALUATION_FIRST_SEED + number, num_documents=8, gaps=False)
            rows.append(row.arrays())
        batches.append([torch.from_numpy(np.stack(arrays)).to(device) for arrays in zip(*rows)])
    return batches


def local_positions(segment, position):
    """Positions as if the preamble and every document stood alone."""
    local = position.clone()
    for row in range(segment.shape[0]):
        for number in segment[row].unique().tolist():
            if 0 <= number < FIRST_QUESTION:
                inside = segment[row] == number
                local[row, inside] -= local[row, inside].min().clone()
    return local


@torch.no_grad()
def predict(model, batch, mode):
    """The predicted next tokens [rows, length] and whether each is right."""
    tokens, segment, position, _, _ = batch
    full = torch.full((tokens.shape[0],), mode == "full", device=tokens.device)
    if mode == "naive":
        position = local_positions(segment, position)
    hidden = model(tokens, position, make_mask(segment, full))
    predicted = F.linear(hidden, model.embed_tokens.weight).argmax(-1)
    right = torch.ones_like(tokens, dtype=torch.bool)
    right[:, :-1] = predicted[:, :-1] == tokens[:, 1:]
    return predicted, right


def questions_of(batch):
    """(row, tokens of the question and its answer, tokens that predict the answer) of every question."""
    _, segment, _, weight, _ = batch
    for row in range(segment.shape[0]):
        for number in segment[row].unique().tolist():
            if number >= FIRST_QUESTION:
                inside = segment[row] == number
                yield row, inside, inside & (weight[row] == 1)


def exact_match(model, batches, mode):
    """Share of questions whose whole answer is right: over all, and by hops."""
    hits = defaultdict(list)
    for batch in batches:
        hops = batch[4]
        _, right = predict(model, batch, mode)
        for row, _, predicting in questions_of(batch):
            hits[int(hops[row][predicting][0])].append(bool(right[row][predicting].all()))
    every = sum(hits.values(), [])
    shares = {f"hop{hop}": round(sum(some) / len(some), 4) for hop, some in sorted(hits.items())}
    return {**shares, "all": round(sum(every) / len(every), 4), "n": len(every)}


def report(model, batches, modes, label, file=sys.stdout):
    scores = {mode: exact_match(model, batches, mode) for mode in modes}
    print(label, json.dumps(scores), file=file, flush=True)


def report_by_wording(model, batches, tokenizer):
    """Prints some misses in mode block, and the exact match by a question's first four words, the worst first."""
    hits = defaultdict(list)
    for batch in batches:
        tokens, _, _, weight, _ = batch
        predicted, right = predict(model, batch, "block")
        for row, inside, predicting in questions_of(batch):
            asked = tokenizer.decode(tokens[row][inside & (weight[row] == 0)].tolist(), skip_special_tokens=False)
            question = asked.split("Question: ", 1)[1].split("<|")[0]
            is_right = bool(right[row][predicting].all())
            hits[" ".join(question.split()[:4])].append(is_right)
            if row < 12 and not is_right:
                wanted = tokenizer.decode(tokens[row][1:][predicting[:-1]].tolist())
                got = tokenizer.decode(predicted[row][predicting].tolist())
                print("MISS", question, "| want", wanted, "| got", got)
    for wording, some in sorted(hits.items(), key=lambda item: sum(item[1]) / len(item[1])):
        if len(some) >= 15:
            print(round(sum(some) / len(some), 3), len(some), wording)
