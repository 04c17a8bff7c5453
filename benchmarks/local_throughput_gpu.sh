#!/usr/bin/env bash
# local_throughput.py on a machine with a GPU that reaches no network and has its own torch:
#
#   benchmarks/local_throughput_gpu.sh wheels          # where there is a network: fetch wheels
#   benchmarks/local_throughput_gpu.sh run [OPTIONS]   # there, with the repository and the wheels
#
# PYTHON is that machine's python with torch and transformers (python3). TARGET is its version as pip
# writes it (3.12), for the wheels. Options go to local_throughput.py; the default is a 7B shape of
# random weights in bfloat16, all 900 prompts, 512 new tokens, in under eight minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=benchmarks/wheels
case "${1:-}" in
wheels)
  python=${PYTHON:-.venv/bin/python}
  mkdir -p "$wheels"
  # Three packages publish their source alone, and are pure Python: they are built here.
  grep -vE '^(#|rouge-score|sqlitedict|word2number)' benchmarks/gpu_needs.txt > "$wheels/needs.txt"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --python-version "${TARGET:-3.12}" --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 \
    --dest "$wheels" --requirement "$wheels/needs.txt"
  grep -E '^(rouge-score|sqlitedict|word2number)' benchmarks/gpu_needs.txt > "$wheels/needs.txt"
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$wheels" --requirement "$wheels/needs.txt"
  rm "$wheels/needs.txt"
  du -sh "$wheels"
  ;;
run)
  shift
  python=${PYTHON:-python3}
  packages=$(mktemp -d)
  trap 'rm -rf "$packages"' EXIT
  "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
    --target "$packages" "$wheels"/*.whl
  export PYTHONPATH=$packages PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader || true
  if [ $# -eq 0 ]; then set -- --device cuda --shape qwen2.5-7b; fi
  # Eight minutes with what the wheels took. Each round is written as it ends, and engines that may
  # take their time to compile are tried last.
  timeout $((470 - SECONDS)) "$python" benchmarks/local_throughput.py --budget 380 \
    --out "${OUT:-benchmarks/results}" "$@"
  ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
