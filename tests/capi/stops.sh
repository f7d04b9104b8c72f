#!/bin/sh
# stops.sh TEXT COMMAND...: the command ends with failure and prints the text, and no process of it is done.
text=$1
shift
printed=$("$@" 2>&1)
status=$?
printf '%s\nstatus %s\n' "$printed" "$status"
[ "$status" -ne 0 ] || exit 1
case $printed in
*"not reached"*) exit 1 ;;
*"$text"*) exit 0 ;;
*) exit 1 ;;
esac
