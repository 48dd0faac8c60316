#!/bin/sh
# The size of the stripped binary is the one that README.md claims, within a tenth.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
strip -o "$dir/descry" "$DESCRY"
bytes=$(stat -c %s "$dir/descry")
sed -n 's/.*one binary of \([0-9]*\)\.\([0-9]\) MB.*/\1\2/p' "$top/README.md" >"$dir/claim"
claim=$(cat "$dir/claim")
[ -n "$claim" ] || { echo "README.md states no size"; exit 1; }
if [ $((bytes / 100000)) -gt $((claim + claim / 10)) ] || [ $((bytes / 100000)) -lt $((claim - claim / 10)) ]; then
	echo "README.md says $claim tenths of a MB, the stripped binary has $bytes bytes"
	exit 1
fi
