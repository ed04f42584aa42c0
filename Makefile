# The one front door. Plain GNU make, bash and a Rust toolchain are enough; cargo-nextest is used when present.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# Rounds of `make crash`.
N ?= 200

# Where the pinned agents of `make test-agents` are installed.
AGENTS ?= $(CURDIR)/target/agents

# Where the pinned client of `make test-acpx` is installed.
ACPX ?= $(CURDIR)/target/acpx

# `yes` when cargo-nextest is installed; asked once and handed to the inner calls of make.
ifndef NEXTEST
export NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes || echo no)
endif

.PHONY: help run build tidy fmt-check lint check test test-agents test-acpx agents-table crash fmt

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## build `rally` and run its demo
	cargo run -p rallypoint-cli --bin rally -- demo

build: ## build `rally` in the dev profile; tests start this program
	cargo build -p rallypoint-cli

tidy:
	cargo xtask tidy

fmt-check:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets -- -D warnings

# One after another also under `make -j`: the cheap ones first, and one cargo at a time.
check: ## tidy, format and lints
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory fmt-check
	@$(MAKE) --no-print-directory lint

test: ## everything that CI runs: the checks, then all tests with the crash loop
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory build
ifeq ($(NEXTEST),yes)
	cargo nextest run --workspace
	cargo test --workspace --doc --quiet
else
	cargo test --workspace
endif
	@$(MAKE) --no-print-directory test-agents
	@$(MAKE) --no-print-directory test-acpx

# Real agents against a mock model on loopback; a gigabyte is installed once, into a folder of its own. Where npm or its
# registry can't be reached the tests are skipped with a word, and fail where `CI` is set.
test-agents: ## real agents: install the pinned ones, run them, compare docs/agents.md
	@$(MAKE) --no-print-directory build
	@.ci/install-agents $(AGENTS)
	@if [[ -e $(AGENTS)/installed ]]; then $(MAKE) --no-print-directory run-test-agents; fi

.PHONY: run-test-agents
run-test-agents:
	rm -rf $(AGENTS)/outcomes
ifeq ($(NEXTEST),yes)
	RALLY_TEST_AGENTS=$(AGENTS) cargo nextest run -p rallypoint-cli --test agents
else
	RALLY_TEST_AGENTS=$(AGENTS) cargo test -p rallypoint-cli --test agents
endif
	cargo xtask agents-table --check $(AGENTS)/outcomes

# A client of the protocol that somebody else wrote, against `rally acp`; skipped and failing as the agents are.
test-acpx: ## `rally acp` under acpx: install the pinned one, run it
	@$(MAKE) --no-print-directory build
	@.ci/install-acpx $(ACPX)
	@if [[ -e $(ACPX)/installed ]]; then $(MAKE) --no-print-directory run-test-acpx; fi

.PHONY: run-test-acpx
run-test-acpx:
ifeq ($(NEXTEST),yes)
	RALLY_TEST_ACPX=$(ACPX) cargo nextest run -p rallypoint-cli --test agents acpx::
else
	RALLY_TEST_ACPX=$(ACPX) cargo test -p rallypoint-cli --test agents acpx::
endif

agents-table: ## write the table in docs/agents.md from the last run of test-agents
	cargo xtask agents-table $(AGENTS)/outcomes

crash: ## kill the daemon N times at random moments and check what is left (N=200)
	@$(MAKE) --no-print-directory build
ifeq ($(NEXTEST),yes)
	RALLY_CRASH_ROUNDS=$(N) cargo nextest run --profile crash -p rallypoint-cli --no-capture crash_loop
else
	cargo test -p rallypoint-cli crash_loop -- --list | grep -q 'crash_loop.*: test' || { echo 'no test named `crash_loop` in rallypoint-cli' >&2; exit 1; }
	RALLY_CRASH_ROUNDS=$(N) cargo test -p rallypoint-cli crash_loop -- --nocapture
endif

fmt: ## format all Rust code
	cargo fmt --all
