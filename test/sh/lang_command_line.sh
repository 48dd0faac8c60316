# A program given in pieces on the command line: forms of -n, default actions, exit codes, -D and DTRACE_OPT_.
set -u
fail=0

# check STATUS OUTPUT COMMAND...: exit status and standard output exactly
check() {
	want=$1 text=$2
	shift 2
	out=$("$@" 2>/dev/null)
	got=$?
	if [ "$got" != "$want" ] || [ "$out" != "$text" ]; then
		echo "$*: exit $got (expected $want), expected:"
		printf '%s\n' "$text"
		echo "got:"
		printf '%s\n' "$out"
		fail=1
	fi
}

e=engine=interp
check 3 'hi' "$DESCRY" -x $e -qn 'BEGIN { printf("hi\n"); exit(3); }'
check 255 '' "$DESCRY" -x $e -qn 'BEGIN { exit(-1); }'
check 0 'one
two' "$DESCRY" -x $e -q -n 'BEGIN { printf("one\n"); }' -n 'BEGIN { printf("two\n"); exit(0); }'
check 0 'named' "$DESCRY" -x $e -q -n 'dtrace:::BEGIN { printf("named\n"); exit(0); }'
check 0 'by provider' "$DESCRY" -x $e -q -P 'dtrace /probename == "BEGIN"/ { printf("by provider\n"); exit(0); }'
check 0 'predicate' "$DESCRY" -x $e -q -n 'BEGIN /pid == $pid/ { printf("predicate\n"); exit(0); }'
check 0 'nine' "$DESCRY" -x $e -C -D N=9 -q -n 'BEGIN { printf("%s\n", N == 9 ? "nine" : "no"); exit(0); }'
check 0 '8' env DTRACE_OPT_STRSIZE=16 "$DESCRY" -x $e -q -n 'BEGIN { printf("%d\n", sizeof(string) / 2); exit(0); }'
check 1 '' "$DESCRY" -x $e -q -n 'BEGIN { nonsense; }'
check 1 '' "$DESCRY" -x $e -q -n 'BEGIN { exit(0); '
check 2 '' "$DESCRY" -x $e -Q

# the default action: the line of the probe and nothing else; header above
"$DESCRY" -x $e -n BEGIN -n 'tick-1ms { exit(0); }' 2>/dev/null >"$BUILD/lang_default.out"
if [ "$(sed -n 1p "$BUILD/lang_default.out")" != 'CPU     ID                    FUNCTION:NAME' ] ||
	! sed -n 2p "$BUILD/lang_default.out" | grep -q '^ *[0-9]\+ *1  *:BEGIN $'; then
	echo 'default action:'
	cat "$BUILD/lang_default.out"
	fail=1
fi
rm -f "$BUILD/lang_default.out"
exit $fail
