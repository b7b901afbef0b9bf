#!/usr/bin/env python3
"""Writes the figures of docs/performance.md anew, by running the commands that stand beside them.

A block of figures looks like this; everything between its two marks is replaced by what the command prints:

    <!-- measured: anyslot bench linear --shape bench/shapes/llama-3.2-1b.json -->
    ...
    <!-- end -->

A command may name variables of the environment, $PEER_DEMO say, for programs that are not part of the project. A block
whose variables are not set stays as it is, and a line says so. Measure on an idle machine.

    scripts/refresh-performance.py [--program FILE] [--page FILE] [--only TEXT]
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


def refresh(text, program, only=""):
    def replace(match):
        command = match["command"]
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
    print("ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "anyslot", help="default: build/anyslot")
    parser.add_argument("--page", default=ROOT / "docs" / "performance.md", type=pathlib.Path)
    parser.add_argument("--only", default="", help="commands that hold this text")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return
    text = options.page.read_text(encoding="utf-8")
    options.page.write_text(refresh(text, str(options.program), options.only), encoding="utf-8")


if __name__ == "__main__":
    main()
