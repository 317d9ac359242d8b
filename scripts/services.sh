#!/usr/bin/env bash
# What `make test` needs beside Python: PostgreSQL, Redis, Node 22, Chromium and the MCP client libraries.
# Installs what is missing where Debian packages may be installed, starts what is not running, and names what
# is skipped. With DUDUCLAW_REQUIRE_SERVICES=1 a missing one ends the run.
SERVICES_CACHE=${DUDUCLAW_CACHE:-$PWD/.cache}
SERVICES_LOG=$SERVICES_CACHE/services.log
CLUSTER=""

apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  local get="apt-get -o DPkg::Lock::Timeout=120 -q"
  export DEBIAN_FRONTEND=noninteractive
  $get install -y --no-install-recommends "$@" >>"$SERVICES_LOG" 2>&1 && return 0
  $get update >>"$SERVICES_LOG" 2>&1 && $get install -y --no-install-recommends "$@" >>"$SERVICES_LOG" 2>&1
}

missing() {
  if [ "${DUDUCLAW_REQUIRE_SERVICES:-}" = 1 ]; then
    echo "missing: $1; $2 (details in $SERVICES_LOG)" >&2
    return 1
  fi
  echo "skipped: tests that need $1; $2"
}

fingerprint() { cat "$@" | sha256sum | cut -d' ' -f1; }

postgres_answers() {
  .venv/bin/python -c 'import psycopg, sys; psycopg.connect(sys.argv[1], connect_timeout=3).close()' "$1" 2>/dev/null
}

as_postgres() {
  if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

postgres_binaries() {
  ls -d "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1
}

start_cluster() {
  local bin
  bin=$(postgres_binaries)
  [ -n "$bin" ] || { apt_install postgresql && bin=$(postgres_binaries); }
  [ -n "$bin" ] || return 1
  CLUSTER=$(mktemp -d /tmp/ddc-pg-XXXXXX)
  [ "$(id -u)" != 0 ] || chown postgres "$CLUSTER"
  (
    cd /
    as_postgres "$bin/initdb" -D "$CLUSTER/data" -U postgres -A trust -E UTF8 --locale=C
    as_postgres "$bin/pg_ctl" -w -D "$CLUSTER/data" -l "$CLUSTER/log" \
      -o "-c listen_addresses='' -k $CLUSTER -c fsync=off -c max_connections=200" start
  ) >>"$SERVICES_LOG" 2>&1 || return 1
  POSTGRES_BIN=$bin
  export DUDUCLAW_TEST_POSTGRES_URL="postgres://postgres@${CLUSTER//\//%2F}/postgres"
}

need_postgres() {
  local url=${DUDUCLAW_TEST_POSTGRES_URL:-postgres://postgres@127.0.0.1:5432/postgres}
  if postgres_answers "$url"; then
    export DUDUCLAW_TEST_POSTGRES_URL=$url
  else
    unset DUDUCLAW_TEST_POSTGRES_URL
    start_cluster || missing PostgreSQL "apt-get install postgresql"
  fi
}

need_redis() {
  command -v redis-server >/dev/null || apt_install redis-server || missing Redis "apt-get install redis-server"
}

need_chromium() {
  command -v chromium >/dev/null || apt_install chromium || missing Chromium "apt-get install chromium"
}

need_node() {
  local dir=tests/clients stamp=tests/clients/node_modules/.stamp want
  want=$(fingerprint $dir/package.json $dir/package-lock.json)
  [ "$(cat $stamp 2>/dev/null)" != "$want" ] || return 0
  command -v npm >/dev/null || apt_install nodejs npm || { missing "Node 22" "apt-get install nodejs npm"; return; }
  if (cd $dir && npm ci --no-audit --no-fund) >>"$SERVICES_LOG" 2>&1; then
    echo "$want" >$stamp
  else
    missing "Node 22" "cd $dir && npm ci"
  fi
}

need_sdk() {
  local want
  want=$(fingerprint requirements-sdk.txt)
  [ "$(cat .venv-sdk/.stamp 2>/dev/null)" != "$want" ] || return 0
  if { [ -x .venv-sdk/bin/python ] || scripts/venv.sh .venv-sdk; } >>"$SERVICES_LOG" 2>&1 &&
    .venv-sdk/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
      -r requirements-sdk.txt >>"$SERVICES_LOG" 2>&1; then
    echo "$want" >.venv-sdk/.stamp
  else
    missing "the MCP client library" "pip install -r requirements-sdk.txt"
  fi
}

start_services() {
  mkdir -p "$SERVICES_CACHE"
  need_postgres && need_redis && need_sdk && need_node && need_chromium
}

stop_services() {
  [ -n "$CLUSTER" ] || return 0
  (cd / && as_postgres "$POSTGRES_BIN/pg_ctl" -m fast -D "$CLUSTER/data" stop) >>"$SERVICES_LOG" 2>&1
  rm -rf "$CLUSTER"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  cd "$(dirname "$0")/.."
  start_services
  trap stop_services EXIT
  echo "services are ready"
fi
