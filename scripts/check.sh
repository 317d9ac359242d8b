#!/usr/bin/env bash
# Everything that is checked without running a test. All steps run; the first failure decides the exit code.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH" DJANGO_SETTINGS_MODULE=tests.settings
DUDUCLAW_HOME=$(mktemp -d)
export DUDUCLAW_HOME
trap 'rm -rf "$DUDUCLAW_HOME"' EXIT
failed=0

step() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok    $name"
  else
    echo "FAIL  $name"
    echo "$output"
    failed=1
  fi
}

step format ruff format --check .
step lint ruff check .
step types mypy .
step imports lint-imports
step system python manage.py check --fail-level WARNING
step migrations python manage.py makemigrations --check --dry-run
exit "$failed"
