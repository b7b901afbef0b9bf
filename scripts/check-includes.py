#!/usr/bin/env python3
"""Fails on an include that the folder table of docs/design.md (section 4) forbids.

A folder may include itself, what its row of the table names, and what the page grants to all ("every folder may
include ...", "every folder of `src` may include ..."). Tests (tests/, fuzz/, and beside the code x_test.cc and test_x.h)
are free of the table, not of the rest: headers of some libraries, and preprocessor tests of the platform, are kept to
the folders below.

    scripts/check-includes.py [--root DIR] | --self-test
"""
import argparse
import pathlib
import re
import sys
import tempfile

SOURCE_FOLDERS = ("include", "src", "server", "cli", "bench", "tests", "fuzz")
SOURCE_SUFFIXES = (".h", ".hpp", ".cc", ".cpp", ".cu", ".cuh")

# (what is kept together, pattern of the header, where it may stand)
LIBRARY_RULES = (
    ("JSON", r"nlohmann/", ("src/text/", "src/model/", "server/", "cli/", "bench/")),
    ("chat templates", r"minja/", ("src/text/",)),
    ("vector intrinsics", r"(\w*mmintrin|\w*immintrin|arm_neon|arm_sve|cpuid)\.h$", ("src/backend/cpu/",)),
    ("CUDA", r"(cuda|cublas|cudnn|nccl|curand|nvtx3?/|cute/|cutlass/)", ("src/backend/cuda/",)),
)
# The thread pool's spin hint has no portable spelling.
PLATFORM_PLACES = ("src/backend/cpu/", "src/backend/cuda/", "src/base/thread_pool.cc")
PLATFORM_TEST = re.compile(
    r"^\s*#\s*(?:el)?if.*\b(__x86_64__|__i386__|__aarch64__|__arm\w*|__AVX\w*|__SSE\w*|__FMA__|__F16C__|__linux__"
    r"|__unix__|__APPLE__|_WIN32|_WIN64|_MSC_VER|__CUDACC__|__CUDA_ARCH__|__BYTE_ORDER__)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TABLE_FOLDER = re.compile(r"`([\w/]+?)/?`")


class PageError(Exception):
    """The design page has no table that this script can read."""


def read_table(page):
    """{folder: set of folders it may include, or None when it may include all} from the page's text."""
    section = re.search(r"^## 4\..*?(?=^## |\Z)", page, re.M | re.S)
    if not section:
        raise PageError("no section 4")
    rows = []
    for line in section.group().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            rows.append((TABLE_FOLDER.findall(cells[0]), cells[2]))
    names = {folder for folders, _ in rows for folder in folders}
    if "src/base" not in names:
        raise PageError("no row for src/base in the table of section 4")
    prose = section.group().replace("\n", " ")
    for_all = granted(r"every folder may include", prose, names)
    for_src = granted(r"every folder of `src` may include", prose, names)
    table = {}
    for folders, may_include in rows:
        free = not may_include or may_include == "all of src"
        for folder in folders:
            table[folder] = None if free else {folder} | for_all | folders_in(may_include, names)
            if table[folder] and folder.startswith("src/"):
                table[folder] |= for_src
    return table


def granted(grant, prose, names):
    """The folders that sentences or clauses of the page with these words grant to all."""
    return set().union(*(folders_in(rest, names) for rest in re.findall(grant + r"([^.;]*)", prose, re.I)))


def folders_in(text, names):
    """The folders of `names` that a cell or sentence names, as `include/anyslot`, src/base or base."""
    found = set()
    for word in re.findall(r"[\w/]+", text):
        found |= {name for name in names if word.rstrip("/") in (name, name.removeprefix("src/"))}
    return found


def folder_of(path, table):
    """The table's folder that holds a file, given its path from the root."""
    return next((folder for folder in table if path.startswith(folder + "/")), None)


def target_folder(root, path, header, table):
    """The table's folder that an include of our own leads to, or None for a header of a library."""
    for prefix in ("include/", "src/", ""):
        folder = folder_of(prefix + header, table)
        if folder:
            return folder
    for start in ((root / path).parent, root / path.split("/", 1)[0], root / "tests"):
        if (start / header).exists():
            return folder_of((start / header).relative_to(root).as_posix(), table)
    return None


def is_test(path):
    return path.startswith(("tests/", "fuzz/")) or re.search(r"(_test|/test_\w+)\.\w+$", path) is not None


def check_include(root, path, quote, header, table):
    """The fault of one include line, or None."""
    if header.startswith("../") or "/../" in header:
        return f"'{header}' climbs out of its folder: include it from src/ or include/"
    source, target = folder_of(path, table), target_folder(root, path, header, table)
    if target:
        allowed = table[source] if source else None
        if allowed is not None and target not in allowed and not is_test(path):
            return f"'{header}': {source}/ may include {', '.join(sorted(allowed - {source})) or 'std'}, not {target}/"
        return None
    if quote == '"':
        return f"'{header}' is not found from src/, include/, beside the file or from {path.split('/', 1)[0]}/"
    if not is_test(path):
        for what, pattern, folders in LIBRARY_RULES:
            if re.match(pattern, header) and not path.startswith(folders):
                return f"<{header}>: {what} may be included in {', '.join(folders)} only"
    return None


def check_file(root, path, table):
    """The faults of one file as (line number, text)."""
    faults = []
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        include = INCLUDE.match(line)
        fault = check_include(root, path, include[1], include[2], table) if include else None
        if PLATFORM_TEST.match(line) and not path.startswith(PLATFORM_PLACES):
            fault = f"platform test in common code: allowed in {', '.join(PLATFORM_PLACES)} only"
        if fault:
            faults.append((number, fault))
    return faults


def check_tree(root):
    """Every fault of the tree as 'path:line: text', and the number of files read."""
    table = read_table((root / "docs/design.md").read_text(encoding="utf-8"))
    paths = [
        file.relative_to(root).as_posix() for folder in SOURCE_FOLDERS for file in sorted((root / folder).rglob("*"))
        if file.suffix in SOURCE_SUFFIXES
    ]
    faults = []
    for path in paths:
        if folder_of(path, table) is None:
            faults.append(f"{path}:1: its folder has no row in the table of docs/design.md, section 4")
            continue
        faults += [f"{path}:{number}: {text}" for number, text in check_file(root, path, table)]
    return faults, len(paths)


SELF_TEST_PAGE = """
## 4. Folders

| folder | holds | may include |
|---|---|---|
| `include/anyslot/` | the API | std |
| `src/base/` | types | std |
| `src/kv/` | blocks | std |
| `src/backend/` | operations | base |
| `src/text/` | words | base |
| `src/engine/` | all | all of src |
| `server/`, `cli/` | users | include/anyslot |
| `tests/` | tests | |

Every folder may include `include/anyslot`; every folder of `src` may include `base`.

## 5. Next
"""
# path: (text, part of the one expected fault or None)
SELF_TEST_FILES = {
    "include/anyslot/status.h": ("#include <string>\n", None),
    "src/base/hash.h": ('#include "anyslot/status.h"\n#include <openssl/evp.h>\n', None),
    "src/base/up.h": ('#include "kv/pool.h"\n', "src/base/ may include include/anyslot, not src/kv/"),
    "src/kv/pool.h": ('#include "base/hash.h"\n#include "kv/pool.h"\n', None),
    "src/kv/json.cc": ("#include <nlohmann/json.hpp>\n", "JSON may be included in"),
    "src/kv/sideways.cc": ('#include "backend/ops.h"\n', "not src/backend/"),
    "src/kv/sideways_test.cc": ('#include "backend/ops.h"\n', None),
    "src/kv/climb.cc": ('#include "../base/hash.h"\n', "climbs out"),
    "src/kv/lost.cc": ('#include "pools.h"\n', "is not found"),
    "src/kv/platform.cc": ("#ifdef __linux__\n#endif\n", "platform test in common code"),
    "src/backend/ops.h": ("#include <immintrin.h>\n", "vector intrinsics"),
    "src/backend/cpu/dot.cc": ("#include <immintrin.h>\n#if defined(__AVX512F__)\n#endif\n", None),
    "src/backend/cpu/gpu.cc": ("#include <cuda_runtime.h>\n", "CUDA may be included in"),
    "src/backend/cuda/gpu.cu": ("#include <cuda_runtime.h>\n", None),
    "src/text/words.cc": ("#include <nlohmann/json.hpp>\n", None),
    "src/engine/core.cc": ('#include "kv/pool.h"\n#include "backend/ops.h"\n', None),
    "src/stray/x.h": ("", "has no row in the table"),
    "cli/main.cc": ('#include "anyslot/status.h"\n#include "local.h"\n', None),
    "cli/local.h": ('#include "anyslot/status.h"\n', None),
    "cli/base.cc": ('#include "base/hash.h"\n', "cli/ may include include/anyslot, not src/base/"),
    "cli/deep.cc": ('#include "kv/pool.h"\n', "cli/ may include include/anyslot, not src/kv/"),
    "tests/support/model.h": ('#include "support/model.h"\n', None),
    "src/kv/test_pool.h": ('#include "support/model.h"\n#include "backend/ops.h"\n', None),
    "src/kv/production.h": ('#include "support/model.h"\n', "src/kv/ may include include/anyslot, src/base, not tests/"),
    "tests/any.cc": ('#include "kv/pool.h"\n#include <nlohmann/json.hpp>\n', None),
}


def self_test():
    """Checks a small tree that holds each kind of fault once; returns the number of wrong verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for path, text in {"docs/design.md": SELF_TEST_PAGE, **{p: t for p, (t, _) in SELF_TEST_FILES.items()}}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        faults, _ = check_tree(root)
    wrong = 0
    for path, (_, expected) in SELF_TEST_FILES.items():
        found = [fault for fault in faults if fault.startswith(path + ":")]
        if (expected is None) != (not found) or len(found) > 1 or (expected and expected not in found[0]):
            print(f"self-test: {path}: expected {expected!r}, found {found}", file=sys.stderr)
            wrong += 1
    try:
        read_table("## 4. Folders\nno table here\n")
        print("self-test: a page without a table was accepted", file=sys.stderr)
        wrong += 1
    except PageError:
        pass
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true", help="check the checker on a tree with known faults")
    options = parser.parse_args()
    if options.self_test:
        wrong = self_test()
        print(f"include rules: self-test of {len(SELF_TEST_FILES)} files, {wrong} wrong")
        return 1 if wrong else 0
    try:
        faults, count = check_tree(options.root.resolve())
    except (OSError, PageError) as error:
        print(f"docs/design.md: {error}", file=sys.stderr)
        return 1
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"include rules: {count} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
