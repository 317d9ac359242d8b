#!/usr/bin/env bash
# Makes the virtual environment with the newest suitable Python; exit 2 and one line when there is none.
set -euo pipefail
target=${1:?directory of the environment}

suits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

chosen=""
for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3; do
  if command -v "$name" >/dev/null && suits "$name"; then
    chosen=$name
    break
  fi
done
if [ -z "$chosen" ]; then
  echo "Python 3.11 or newer is needed: on Debian, apt-get install python3.11 python3.11-venv" >&2
  exit 2
fi
if ! "$chosen" -c 'import venv, ensurepip' 2>/dev/null; then
  version=$("$chosen" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "$chosen has no venv: on Debian, apt-get install python3-venv (or python$version-venv)" >&2
  exit 2
fi
"$chosen" -m venv "$target"
