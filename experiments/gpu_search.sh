#!/usr/bin/env bash
# One search on one GPU, in under nine minutes, from nothing but this checkout and a Python that has jax,
# optax, numpy, scipy and sympy: a mean stage of size 2049, after comparing the GPU with the processor at size 257.
# JSON objects, one a line, on standard output; arguments go to gpu_search.py (--help lists them).
#
#   experiments/gpu_search.sh [--size M] [--agreement M] [--seconds S] [--steps N] [--out FILE.npz]
#   PYTHON=/path/to/python experiments/gpu_search.sh        to choose the Python
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# The package as an installation would lay it out: nothing is built, and no installer is needed.
mkdir "$home/trilift"
for part in "$root"/front/*; do ln -s "$part" "$home/trilift/"; done
for room in lift factorize verify artifacts stream counters experiments; do
    ln -s "$root/$room" "$home/trilift/$room"
done
# memory is taken as it is needed: others may be at work on the device
export XLA_PYTHON_CLIENT_PREALLOCATE=${XLA_PYTHON_CLIENT_PREALLOCATE:-false}
PYTHONPATH="$home${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 \
    timeout --signal=TERM 535 "${PYTHON:-python3}" -P -m trilift.experiments.gpu_search "$@"
