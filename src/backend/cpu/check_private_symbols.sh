#!/bin/sh
# Fails when an object file that was compiled for one instruction set defines more than its table of kernels: the
# linker could take anything else, an inline function of a header for example, for all callers on all machines.
# usage: check_private_symbols.sh OBJECT...
set -eu
[ "$#" -gt 0 ]
for object in "$@"; do
  symbols=$(nm --defined-only --extern-only --format=posix "$object" | cut -d ' ' -f 1)
  case $symbols in
    *anyslot*Kernels*[[:space:]]*) echo "$object defines more than its table: $symbols" >&2; exit 1 ;;
    *anyslot*Kernels*) ;;
    *) echo "$object does not define its table: $symbols" >&2; exit 1 ;;
  esac
done
