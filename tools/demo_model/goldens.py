"""Reference outputs of Hugging Face transformers in float32, for the demo model and for tiny models of its kind."""
import argparse
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer

from examples import example
from prompt import END_OF_TURN, PREAMBLE, QUERY

LOWEST = torch.finfo(torch.float32).min
DEMO_FIRST_SEED = 7_700_000
DEMO_DOCUMENTS = (3, 6, 8, 10, 16, 20)
DEMO_GREEDY_TOKENS = 24

TOKENIZER_CASES = [
    "Hello world",
    "  two  spaces\n\nnew\r\n lines\t tab",
    "naïve café — “quotes” … 日本語 текст 🙂👩‍👩‍👧",
    "1234567890 3.14 1,000,000",
    "I'm you've we'll THEY'RE",
    "<|eot_id|>mid<|start_header_id|>user<|end_header_id|>",
    "",
    "a" * 300,
    " leading",
    "trailing ",
    "\u00a0nbsp\u200bzw",
    "ﬁ ligature Å A\u030a",
]

TINY_BASE = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
TINY_TOKENS = 72
TINY_SEGMENT_TOKENS = (16, 16, 16, 16, 8)  # four documents and a query that sees everything
GEMMA = {"head_dim": 16, "sliding_window": 16, "query_pre_attn_scalar": 16, "tie_word_embeddings": True}
# name: (transformers' config class, what differs from TINY_BASE)
TINY_MODELS = {
    "llama-plain": ("LlamaConfig", {}),
    "llama-tied": ("LlamaConfig", {"tie_word_embeddings": True}),
    "llama-rope-llama3": ("LlamaConfig", {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    }),
    "llama-rope-linear": ("LlamaConfig", {
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    }),
    "llama-rope-yarn": ("LlamaConfig", {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    }),
    "mistral-window": ("MistralConfig", {"sliding_window": 16}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", {"head_dim": 32}),
    "phi3": ("Phi3Config", {"partial_rotary_factor": 1.0}),
    "phi3-partial": ("Phi3Config", {"partial_rotary_factor": 0.5}),
    "gemma2": ("Gemma2Config", GEMMA),
    "gemma3": ("Gemma3TextConfig", GEMMA),
    "olmo2": ("Olmo2Config", {}),
    "granite": ("GraniteConfig", {
        "embedding_multiplier": 6.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.4,
        "logits_scaling": 3.0,
    }),
    "smollm3": ("SmolLM3Config", {}),
    "mixtral": ("MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3-moe": ("Qwen3MoeConfig", {
        "head_dim": 16,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 48,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }),
}
# Families whose plain attention takes the block mask as it is (no windows).
BLOCK_FAMILIES = ("llama", "qwen2", "qwen3", "phi3", "olmo2", "granite", "smollm3", "mixtral")


def segment_of_token(lengths):
    return torch.tensor([number for number, length in enumerate(lengths) for _ in range(length)])


def visible(segment, mode):
    """[n, n] of bool: causal, and in mode block only the own segment, but for the last one, which sees all."""
    n = len(segment)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    if mode == "block":
        is_query = segment[:, None] == segment[-1]
        mask &= (segment[:, None] == segment[None, :]) | is_query
    return mask


def additive(mask):
    """transformers' form of a mask: [1, 1, n, n], 0 where a token is seen."""
    return torch.zeros(mask.shape).masked_fill(~mask, LOWEST)[None, None]


@torch.no_grad()
def logits_of(model, ids, mask):
    """[num_tokens, vocab] for token ids and a mask of bool."""
    device = model.device
    output = model(
        input_ids=torch.tensor([ids], device=device),
        attention_mask=additive(mask).to(device),
        position_ids=torch.arange(len(ids), device=device)[None],
    )
    return output.logits[0]


def greedy(model, ids, mask, stop):
    """Up to DEMO_GREEDY_TOKENS tokens after a prompt; they see all of it."""
    n = len(ids)
    current, answer = list(ids), []
    for _ in range(DEMO_GREEDY_TOKENS):
        longer = torch.ones(len(current), len(current), dtype=torch.bool).tril()
        longer[:n, :n] = mask
        token = logits_of(model, current, longer)[-1].argmax().item()
        answer.append(token)
        current.append(token)
        if token == stop:
            break
    return answer


def demo_case(model, tokenizer, number, tensors):
    """One prompt in both modes: its row of cases.json; the logits go to `tensors`."""
    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    documents, questions = example(DEMO_FIRST_SEED + number, DEMO_DOCUMENTS[number], 4)
    question = questions[0]
    query = QUERY.format(question=question.text)
    segments = [encode(text) for text in (PREAMBLE, *documents, query)]
    ids = sum(segments, [])
    case = {
        "preamble": PREAMBLE,
        "documents": documents,
        "query": query,
        "question": question.text,
        "answer": question.answer,
        "segment_token_ids": segments,
    }
    for mode in ("full", "block"):
        mask = visible(segment_of_token([len(segment) for segment in segments]), mode)
        logits = logits_of(model, ids, mask)
        tensors[f"case{number}.{mode}.last_logits"] = logits[-1].cpu().contiguous()
        query_logits = logits[-len(segments[-1]):]
        tensors[f"case{number}.{mode}.query_logits_max"] = query_logits.max(-1).values.cpu().contiguous()
        answer = greedy(model, ids, mask, tokenizer.token_to_id(END_OF_TURN))
        case[mode] = {"greedy_token_ids": answer, "greedy_text": tokenizer.decode(answer)}
    print(number, len(ids), question.answer, "|", case["full"]["greedy_text"], "|", case["block"]["greedy_text"],
          flush=True)
    return case


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def write_demo(model_folder, output, device):
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(
        model_folder, dtype=torch.float32, attn_implementation="eager").to(device).eval()
    tensors = {}
    cases = [demo_case(model, tokenizer, number, tensors) for number in range(len(DEMO_DOCUMENTS))]
    write_json(output / "cases.json", cases)
    save_file(tensors, output / "logits.safetensors")
    tokenized = []
    for text in TOKENIZER_CASES:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenized.append({
            "text": text,
            "ids": ids,
            "ids_with_bos": tokenizer.encode(text).ids,
            "decoded": tokenizer.decode(ids, skip_special_tokens=False),
        })
    write_json(output / "tokenizer.json", tokenized)


def write_tiny(name, output):
    """A random model of one architecture, its weights and its logits for 72 tokens."""
    config_class, differences = TINY_MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    config = getattr(transformers, config_class)(**{**TINY_BASE, **differences})
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    for parameter_name, parameter in model.named_parameters():
        is_matrix = parameter.ndim > 1
        offset = 0 if is_matrix or "bias" in parameter_name else 1.0
        with torch.no_grad():
            parameter.copy_(torch.randn_like(parameter) * (0.08 if is_matrix else 0.1) + offset)
    model.save_pretrained(output / name)
    ids = torch.randint(3, 320, (1, TINY_TOKENS))
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0]
    tensors = {"input_ids": ids[0].int(), "full_logits": logits.contiguous()}
    if name.split("-")[0] in BLOCK_FAMILIES:
        segment = segment_of_token(TINY_SEGMENT_TOKENS)
        with torch.no_grad():
            block_logits = model(
                input_ids=ids,
                attention_mask=additive(visible(segment, "block")),
                position_ids=torch.arange(TINY_TOKENS)[None],
                use_cache=False,
            ).logits[0]
        tensors["block_logits"] = block_logits.contiguous()
        tensors["segment_of_token"] = segment.int()
    save_file(tensors, output / name / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="folder of the demo model")
    parser.add_argument("output", type=pathlib.Path, help="folder to write demo/ and tiny/ to")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu",
                        help="where the demo model runs")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    write_demo(options.model, options.output / "demo", options.device)
    failed = []
    for name in TINY_MODELS:
        try:
            write_tiny(name, options.output / "tiny")
        except Exception as error:  # one architecture less in this version of transformers does not spoil the others
            print(f"{name}: {error!r}"[:300], file=sys.stderr)
            failed.append(name)
    print(f"{len(TINY_MODELS) - len(failed)} tiny models", f"without {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
