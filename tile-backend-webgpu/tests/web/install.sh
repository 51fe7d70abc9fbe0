#!/bin/sh
# Installs the packages of npm that the tests need, next to this file. No lock file: it would name the registry's host.
set -eu
cd "$(dirname "$0")"
npm install --no-package-lock --no-audit --no-fund
