#!/bin/sh
# covers: bpflog
# Under the name dtrace, what a program's run prints has the form that scripts around DTrace look for. The kernel runs all of these.
set -u
"$DESCRY" -x engine=kernel -qn 'BEGIN { exit(0); }' 2>/dev/null || { echo "no program runs in the kernel here"; exit 77; }
. "$(dirname "$0")/as_dtrace.inc"

check 0 '^dtrace: error in dt_clause_1 for probe ID 1 (dtrace:::BEGIN): divide-by-zero at BPF pc [1-9]' -n 'BEGIN { x = 0; } BEGIN { trace(1 / x); } BEGIN { exit(0); }'
# a clause of two descriptions counts as two
check 0 '^dtrace: error in dt_clause_2 for probe ID 1 ' -n 'BEGIN, END { x = 0; } BEGIN { trace(1 / x); } BEGIN { exit(0); }'
check 0 '^dtrace: error in dt_clause_0 for probe ID 1 (dtrace:::BEGIN): couldn.t set option "nosuch" to "1": Invalid option name$' -qn 'BEGIN { setopt("nosuch"); exit(0); }'
check 0 'Operation illegal when tracing is active$' -qn 'BEGIN { setopt("bufsize", "1m"); exit(0); }'
# $target is 0 without a process, and nothing is said of it
"$T/dtrace" -qn 'BEGIN /pid == $target/ { trace(1); } BEGIN { exit(0); }' >"$T/out" 2>&1 && ! grep -q warning "$T/out" || { echo '$target'; cat "$T/out"; fail=1; }
check 0 '^dtrace: allowing destructive actions$' -wn 'BEGIN { exit(0); }'
"$T/dtrace" -qwn 'BEGIN { exit(0); }' 2>&1 | grep -q allowing && { echo 'allowing, with -q'; fail=1; }
# what a description is called, and how stable the program is
check 0 "^dtrace: description 'BEGIN' matched 1 probe\$" -n 'BEGIN{ exit(0); }'
check 0 "^dtrace: description 'BEGIN ' matched 1 probe\$" -n 'BEGIN /1/ { exit(0); }'
check 0 '^Stability attributes for description dtrace:::BEGIN :$' -v -n 'dtrace:::BEGIN { trace(curthread->pid); exit(0); }'
tr '\n\t' '; ' <"$T/out" | grep -q 'Probe Description Attributes;  Identifier Names: Stable;  Data Semantics:   Stable;  Dependency Class: Common;; Minimum Statement Attributes;  Identifier Names: Stable;  Data Semantics:   Private;  Dependency Class: Common;' || { cat "$T/out"; fail=1; }
# the last exit() counts
check 3 END -n 'BEGIN { exit(1); } END { exit(3); }'
# BEGIN and END fire on the one CPU that is traced
for cpu in $(taskset -cp $$ | sed 's/.*: //; s/[,-]/ /g'); do
	check 0 "^$cpu $cpu\$" -x cpu="$cpu" -qn 'BEGIN { printf("%d", cpu); exit(0); } END { printf(" %d\n", cpu); }'
done
check 0 '^yes$' -qn 'BEGIN { printf("%s\n", (int64_t)curcpu == cpu ? "yes" : "no"); trace(curcpu); exit(0); }'
# the verifier's log
check 0 '^BPF: ' -x engine=kernel -x bpflog -qn 'BEGIN { exit(0); }'
exit $fail
