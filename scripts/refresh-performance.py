#!/usr/bin/env python3
"""Writes the figures of docs/performance.md anew, by running the commands that stand beside them.

A block of figures looks like this; everything between its two marks is replaced by what the command prints:

    <!-- measured: anyslot bench linear --shape bench/shapes/llama-3.2-1b.json -->
    ...
    <!-- end -->

A command may name variables of the environment, $PEER_DEMO say, for programs that are not part of the project. A block
whose variables are not set stays as it is, and a line says so. Measure on an idle machine.

The figures of docs/performance-gpu.md stand in the logs of scripts/gpu-check.sh, which runs where the GPU is. A block
measured by `scripts/gpu-check.sh --only PATTERN` gets the logs of the checks of such names from the folder of --logs.

    scripts/refresh-performance.py [--program FILE] [--page FILE] [--only TEXT]
    scripts/refresh-performance.py --page docs/performance-gpu.md --logs build/gpu-results
    scripts/refresh-performance.py --self-test
"""
import argparse
import os
import pathlib
import re
import shlex
import string
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- measured: (?P<command>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
VARIABLE = re.compile(r"\$(\w+)")
GPU_CHECK = "scripts/gpu-check.sh --only "


def run(command, program):
    """What the command prints on standard output, with variables in place of what they hold."""
    arguments = shlex.split(command)
    if arguments[0] != "anyslot":
        sys.exit(f"error: a measured command must start with anyslot: {command}")
    arguments = [string.Template(argument).substitute(os.environ) for argument in arguments]
    print(f"==> {command}", flush=True)
    started = time.time()
    result = subprocess.run([program, *arguments[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"error: exit code {result.returncode}: {command}")
    print(f"    {time.time() - started:.0f} s", flush=True)
    output = result.stdout
    for name in VARIABLE.findall(command):  # what a variable holds is this machine's affair
        output = output.replace(os.environ[name], f"${name}")
    return output


def gpu_logs(pattern, folder):
    """What the checks of such names printed, in the order of their names."""
    logs = [path for path in sorted(folder.glob("*.log")) if re.search(pattern, path.stem)]
    if not logs:
        sys.exit(f"error: {folder} has no log of a check named {pattern}")
    return "".join(path.read_text(encoding="utf-8").lstrip("\n") for path in logs)


def refresh(text, program, only="", logs=None):
    def replace(match):
        command = match["command"]
        if command.startswith(GPU_CHECK):
            if logs is None or only not in command:
                return match[0]
            pattern = shlex.split(command[len(GPU_CHECK):])[0]
            return f"{match[1]}```text\n{gpu_logs(pattern, logs).strip()}\n```\n{match[3]}"
        missing = [name for name in VARIABLE.findall(command) if name not in os.environ]
        if missing:
            print(f"==> left as it is, for want of {', '.join(missing)}: {command}", flush=True)
        if missing or only not in command:
            return match[0]
        return f"{match[1]}```text\n{run(command, program).strip()}\n```\n{match[3]}"

    return BLOCK.sub(replace, text)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        program.write_text("#!/bin/sh\necho \"ran $*\"\n", encoding="utf-8")
        program.chmod(0o755)
        os.environ["ANYSLOT_TEST_PEER"] = "a b"
        page = ("before\n<!-- measured: anyslot bench x --peer \"$ANYSLOT_TEST_PEER\" -->\nold\n<!-- end -->\nbetween\n"
                "<!-- measured: anyslot bench y $ANYSLOT_TEST_NOWHERE -->\nkept\n<!-- end -->\nafter\n")
        expected = page.replace("old\n", "```text\nran bench x --peer $ANYSLOT_TEST_PEER\n```\n")
        assert refresh(page, program) == expected, refresh(page, program)
        assert refresh(expected, program) == expected
        assert refresh(page, program, only="bench y") == page
        for name in ("a_1", "a_2", "b_1"):
            pathlib.Path(folder, name + ".log").write_text(f"\nfrom {name}\n", encoding="utf-8")
        page = "<!-- measured: scripts/gpu-check.sh --only '^a_' -->\nold\n<!-- end -->\n"
        expected = page.replace("old\n", "```text\nfrom a_1\nfrom a_2\n```\n")
        assert refresh(page, program, logs=pathlib.Path(folder)) == expected
        assert refresh(page, program) == page
    print("ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "anyslot", help="default: build/anyslot")
    parser.add_argument("--page", default=ROOT / "docs" / "performance.md", type=pathlib.Path)
    parser.add_argument("--only", default="", help="commands that hold this text")
    parser.add_argument("--logs", type=pathlib.Path, help="a folder that scripts/gpu-check.sh wrote")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return
    text = options.page.read_text(encoding="utf-8")
    options.page.write_text(refresh(text, str(options.program), options.only, options.logs), encoding="utf-8")


if __name__ == "__main__":
    main()
