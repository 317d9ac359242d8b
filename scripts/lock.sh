#!/usr/bin/env bash
# Writes requirements*.txt for every Python from 3.11.0 on, with the hashes of all wheels and no address of an index.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
.venv/bin/python -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv

compile() {
  local name=$1
  shift
  "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --output-file "$name.txt" "$@" "$name.in"
}

compile requirements
compile requirements-dev --constraint requirements.txt
compile requirements-sdk
