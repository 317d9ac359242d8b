#!/usr/bin/env bash
# Services, then the tests marked `engines` on PostgreSQL, then the whole suite on SQLite.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/services.sh
start_services
trap stop_services EXIT

if [ "${1:-}" = "-n" ] && [ $# -eq 2 ] && [ -n "${DUDUCLAW_TEST_POSTGRES_URL:-}" ]; then
  status=0
  DUDUCLAW_TEST_DATABASE_URL=$DUDUCLAW_TEST_POSTGRES_URL \
    .venv/bin/python -m pytest -q -m "engines and not long and not chaos" "$@" || status=$?
  # 5: nothing carries the mark.
  [ "$status" -eq 0 ] || [ "$status" -eq 5 ] || exit "$status"
fi
.venv/bin/python -m pytest "$@"
