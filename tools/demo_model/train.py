"""Trains the demo model, which answers questions from documents with full and with block attention. Needs a GPU."""
import argparse
import math
import pathlib
import shutil
import time

import torch
import torch.nn.functional as F
from torch import nn

from evaluate import MODES, evaluation_batches, report, report_by_wording
from model import LanguageModel, export, load, make_mask
from prompt import BEGIN_OF_TEXT
from train_tokenizer import VOCABULARY_SIZE, train_tokenizer
from training_data import Encoder, Rows

WARM_UP_STEPS = 200


def model_config(encoder):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": 384,
        "intermediate_size": 1024,
        "num_hidden_layers": 8,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": encoder.tokenizer.token_to_id(BEGIN_OF_TEXT),
        "eos_token_id": encoder.end_of_turn,
        "pad_token_id": encoder.padding,
    }


def make_optimizer(model, learning_rate):
    matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), fused=True)


def scheduled(learning_rate, step, progress):
    """Linear warm-up, then a cosine to 2 percent; progress is the share of the time that is gone."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(1, progress)))
    return learning_rate * min(1, (step + 1) / WARM_UP_STEPS) * (0.02 + 0.98 * cosine)


def losses(model, embedding, batch, full):
    """The weighted loss, and the plain loss over the answers alone."""
    tokens, segment, position, weight, _ = batch
    hidden = model(tokens, position, make_mask(segment, full))
    selected = weight[:, :-1] > 0
    logits = F.linear(hidden[:, :-1][selected], embedding.to(hidden.dtype)).float()
    loss = F.cross_entropy(logits, tokens[:, 1:][selected], reduction="none")
    weight = weight[:, :-1][selected]
    return (loss * weight).sum() / weight.sum(), loss[weight == 1].mean().detach()


def train(model, rows, batches, options):
    """Trains for options.seconds, half of the rows with full and half with block attention; returns the steps."""
    optimizer = make_optimizer(model, options.learning_rate)
    compiled = torch.compile(model) if options.compile else model
    start = time.time()
    step = 0
    while time.time() < start + options.seconds:
        progress = (time.time() - start) / options.seconds
        learning_rate = scheduled(options.learning_rate, step, progress)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        batch = [array.cuda(non_blocking=True) for array in next(rows)]
        full = torch.rand(batch[0].shape[0], device="cuda") < 0.5
        with torch.autocast("cuda", torch.bfloat16):
            loss, answer_loss = losses(compiled, model.embed_tokens.weight, batch, full)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(step, "t", round(time.time() - start, 1), "loss", round(loss.item(), 4), "ans",
                  round(answer_loss.item(), 4), "lr", round(learning_rate, 6), flush=True)
        if step % 700 == 0:
            with torch.autocast("cuda", torch.bfloat16):
                report(model, batches[:2], ("full", "block"), "  eval")
    return step


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, help="folder for tokenizer.json, config.json and the weights")
    parser.add_argument("--seconds", type=float, default=400, help="time to train")
    parser.add_argument("--init", type=pathlib.Path, help="folder of a model to go on from, with its tokenizer")
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--batch-size", type=int, default=128, help="rows of 1536 tokens")
    parser.add_argument("--workers", type=int, default=14, help="processes that make rows")
    parser.add_argument("--data-seed", type=int, default=int(time.time()) % 100000, help="default: from the clock")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="do not use torch.compile")
    return parser.parse_args()


def main():
    options = parse_arguments()
    start = time.time()
    options.output.mkdir(parents=True, exist_ok=True)
    tokenizer_path = options.output / "tokenizer.json"
    if options.init:
        shutil.copy(options.init / "tokenizer.json", tokenizer_path)
    else:
        train_tokenizer().save(str(tokenizer_path))
    encoder = Encoder(tokenizer_path)
    print("vocab", encoder.tokenizer.get_vocab_size(), "tok s", time.time() - start, "data seed", options.data_seed,
          flush=True)

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = LanguageModel(model_config(encoder)).cuda()
    print("params", sum(parameter.numel() for parameter in model.parameters()) / 1e6, flush=True)
    if options.init:
        load(model, options.init)
    rows = torch.utils.data.DataLoader(
        Rows(tokenizer_path, options.data_seed),
        batch_size=options.batch_size,
        num_workers=options.workers,
        prefetch_factor=4,
        pin_memory=True,
    )
    batches = evaluation_batches(encoder, "cuda")
    steps = train(model, iter(rows), batches, options)
    export(model, options.output)

    rounded = model.to(torch.bfloat16).float()
    with torch.autocast("cuda", torch.bfloat16):
        report(rounded, batches, MODES, "FINAL")
        print("steps", steps, "s", round(time.time() - start), flush=True)
        report_by_wording(rounded, batches, encoder.tokenizer)


if __name__ == "__main__":
    main()
