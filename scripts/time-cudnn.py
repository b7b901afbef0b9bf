#!/usr/bin/env python3
"""Times cuDNN's causal attention, through PyTorch, over the documents that `cuda_attention_timing` encodes.

  scripts/time-cudnn.py [--documents N] [--tokens N] [--dtype bfloat16|float16]

32 query heads, 8 kv heads, head_dim 128, as there; inputs rotate over 300 MB, calls stand in a graph, and the time is the median
of 15 runs of it. Both layouts that models use are timed, [documents, heads, tokens, head_dim] in memory and tokens before heads.
Needs PyTorch with CUDA.
"""
import argparse
import statistics
import sys

HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
ROTATED_BYTES = 300 << 20
CALLS, RUNS, WARM_UPS = 20, 15, 3


def inputs_of(torch, shape, dtype, tokens_first):
    """Q, K and V of one call; heads before tokens for the call, whatever comes first in memory."""
    documents, tokens = shape

    def random(heads):
        if tokens_first:
            return torch.randn(documents, tokens, heads, HEAD_DIM, dtype=dtype, device="cuda").transpose(1, 2)
        return torch.randn(documents, heads, tokens, HEAD_DIM, dtype=dtype, device="cuda")

    return random(HEADS), random(KV_HEADS), random(KV_HEADS)


def microseconds(torch, shape, dtype, tokens_first):
    """The median time of a call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    size = shape[0] * shape[1] * (HEADS + 2 * KV_HEADS) * HEAD_DIM * 2
    inputs = [inputs_of(torch, shape, dtype, tokens_first) for _ in range(ROTATED_BYTES // size + 1)]

    def calls():
        for i in range(CALLS):
            q, k, v = inputs[i % len(inputs)]
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            calls()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            calls()
    times = []
    for _ in range(WARM_UPS + RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return statistics.median(times[WARM_UPS:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--dtype", choices=["bfloat16", "float16"], default="bfloat16")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("error: PyTorch is missing\n  what to do: run this where `python3 -c 'import torch'` works")
    if not torch.cuda.is_available():
        sys.exit("error: PyTorch sees no GPU\n  what to do: check nvidia-smi")
    pairs = options.documents * options.tokens * (options.tokens + 1) // 2
    flops = 4 * HEADS * HEAD_DIM * pairs
    print(f"cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name, tokens_first in (("heads first", False), ("tokens first", True)):
        us = microseconds(torch, (options.documents, options.tokens), getattr(torch, options.dtype), tokens_first)
        case = f"cuDNN, encode {options.documents} x {options.tokens}, {name}"
        print(f"{case:<42} {us:9.1f} us {'':12}{flops / us / 1e6:6.1f} TFLOP/s")


if __name__ == "__main__":
    main()
