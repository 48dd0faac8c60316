# Macro arguments that are missing, unused, or of the wrong form.
set -u
fail=0

# expect STATUS PATTERN COMMAND...: checks the exit status, and an extended regular expression against the output
expect() {
	want=$1 pattern=$2
	shift 2
	out=$("$@" 2>&1)
	got=$?
	if [ "$got" != "$want" ] || ! printf '%s\n' "$out" | grep -qE -e "$pattern"; then
		echo "$*: exit $got (expected $want), looking for '$pattern' in:"
		printf '%s\n' "$out"
		fail=1
	fi
}

e=engine=interp
expect 0 '^5$' "$DESCRY" -x $e -qn 'BEGIN { printf("%d\n", $1); exit(0); }' 5
expect 0 '^abc$' "$DESCRY" -x $e -qn 'BEGIN { printf("%s\n", $$1); exit(0); }' abc
expect 0 '^12$' "$DESCRY" -x $e -qn 'BEGIN { printf("%s\n", $$1); exit(0); }' 12
expect 0 '^a b "c"$' "$DESCRY" -x $e -qn 'BEGIN { printf("%s\n", $$1); exit(0); }' 'a b "c"'
expect 0 '^BEGIN 3$' "$DESCRY" -x $e -qn '$1 { printf("%s %d\n", probename, $2); exit(0); }' BEGIN 3
expect 0 '^0 \[\]$' "$DESCRY" -x $e -x defaultargs -qn 'BEGIN { printf("%d [%s]\n", $1, $$2); exit(0); }'
expect 1 'D_MACRO_UNDEF' "$DESCRY" -x $e -x errtags -qn 'BEGIN { trace($1); exit(0); }'
expect 1 'D_MACRO_UNUSED' "$DESCRY" -x $e -x errtags -qn 'BEGIN { trace(1); exit(0); }' 7
expect 0 '^1$' "$DESCRY" -x $e -x argref -qn 'BEGIN { trace(1); exit(0); }' 7
expect 0 '^1 1$' "$DESCRY" -x $e -qn 'BEGIN { printf("%d %d\n", $pid == pid, $uid == uid); exit(0); }'
expect 0 'taken as 0' "$DESCRY" -x $e -qn 'BEGIN { trace($target); exit(0); }'
exit $fail
