#!/usr/bin/env bash
# Draws docs/diagrams/*.svg anew from the Mermaid text beside each: diagrams.sh [OPTIONS OF mmdc]
#
# Needs mmdc (npm install @mermaid-js/mermaid-cli) and a Chromium. An SVG ends in the fingerprint of its text, which
# scripts/documents checks.
set -euo pipefail
cd "$(dirname "$0")/../docs/diagrams"
settings=$(mktemp --suffix=.json)
trap 'rm -f "$settings"' EXIT
echo '{"htmlLabels": false, "flowchart": {"htmlLabels": false}}' >"$settings"
for text in *.mmd; do
  drawn=${text%.mmd}.svg
  mmdc --quiet --configFile "$settings" --theme neutral --backgroundColor white --input "$text" --output "$drawn" "$@"
  printf '\n<!-- of %s -->\n' "$(sha256sum "$text" | cut -c1-16)" >>"$drawn"
done
