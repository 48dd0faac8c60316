#!/bin/sh
# A clause of more instructions than a jump reaches runs, and every engine gives the same output.
set -eu
"$DESCRY" -x engine=kernel -qn 'BEGIN { exit(0); }' 2>/dev/null || {
	echo "no program runs in the kernel here"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
awk 'BEGIN {
	print "int x, y;\nBEGIN /x == 0/ {"
	for (i = 0; i < 400; i++)
		printf "\ty += (x + %d) %% 7 == 3 ? strlen(strjoin(probename, \"a%d\")) : 7 / (x + %d);\n", i, i, i + 1
	print "}\nBEGIN { printf(\"%d\\n\", y); exit(0); }\nERROR { exit(1); }"
}' > "$dir/long.d"
n=$("$DESCRY" -S -e -s "$dir/long.d" 2>/dev/null | wc -l)
[ "$n" -gt 33000 ] || { echo "the program has $n lines only: too short to prove anything"; exit 1; }
want=$("$DESCRY" -x engine=interp -qs "$dir/long.d")
[ -n "$want" ]
for engine in inproc kernel; do
	got=$("$DESCRY" -x engine=$engine -qs "$dir/long.d" 2>"$dir/err") || {
		cat "$dir/err"
		grep -q "not permitted\|Operation not" "$dir/err" && echo "$engine: not permitted here" && exit 77
		exit 1
	}
	[ "$got" = "$want" ] || { echo "$engine: $got, not $want"; exit 1; }
done
