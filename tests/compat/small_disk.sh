#!/bin/sh
# small_disk.sh DIRECTORY COMMAND...: runs the command with a file system of 2 MiB there, which it alone sees.
mkdir -p "$1"
if ! unshare -m mount -t tmpfs -o size=2m outcore-test "$1" 2>/dev/null; then
  echo "NOT TESTED without the right to mount a small file system"
  exit 0
fi
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare -m sh -c 'mount -t tmpfs -o size=2m outcore-test "$1" && shift && exec "$@"' sh "$@"
