#!/bin/sh
# covers: bpflog
# Under the name dtrace, the output of a program's run has the form that scripts around DTrace expect. The kernel runs
# all of these.
set -u
"$DESCRY" -x engine=kernel -qn 'BEGIN { exit(0); }' 2>/dev/null || { echo "no program runs in the kernel here"; exit 77; }
. "$(dirname "$0")/as_dtrace.inc"

check 0 '^dtrace: error in dt_clause_1 for probe ID 1 (dtrace:::BEGIN): divide-by-zero at BPF pc [1-9]' -n 'BEGIN { x = 0; } BEGIN { trace(1 / x); } BEGIN { exit(0); }'
# a clause of two descriptions counts as two
check 0 '^dtrace: error in dt_clause_2 for probe ID 1 ' -n 'BEGIN, END { x = 0; } BEGIN { trace(1 / x); } BEGIN { exit(0); }'
check 0 '^dtrace: error in dt_clause_0 for probe ID 1 (dtrace:::BEGIN): couldn.t set option "nosuch" to "1": Invalid option name$' -qn 'BEGIN { setopt("nosuch"); exit(0); }'
check 0 'Operation illegal when tracing is active$' -qn 'BEGIN { setopt("bufsize", "1m"); exit(0); }'
# $target is 0 without a process, silently
"$T/dtrace" -qn 'BEGIN /pid == $target/ { trace(1); } BEGIN { exit(0); }' >"$T/out" 2>&1 && ! grep -q warning "$T/out" || { echo '$target'; cat "$T/out"; fail=1; }
check 0 '^dtrace: allowing destructive actions$' -wn 'BEGIN { exit(0); }'
"$T/dtrace" -qwn 'BEGIN { exit(0); }' 2>&1 | grep -q allowing && { echo 'allowing, with -q'; fail=1; }
# the names of descriptions, and the stability of the program
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
# copyinstr()'s second argument counts the end of the string, and more than strsize is strsize
check 0 '^|Delay i|$' -qn 'syscall::write:entry /pid == $target/ { printf("|%s|\n", copyinstr(arg1, 8)); exit(0); }' -c 'echo Delay in ns needed'
check 0 '^|Delay in ns|$' -x strsize=12 -qn 'syscall::write:entry /pid == $target/ { printf("|%s|\n", copyinstr(arg1, 96)); exit(0); }' -c 'echo Delay in ns needed'
# an option that cannot be set is followed by an empty line; the preprocessor gives no warning about descry's macros
"$T/dtrace" -qn 'BEGIN { setopt("nosuch"); exit(0); }' 2>&1 | tr '\n' '|' | grep -q 'Invalid option name||' || { echo 'setopt(): no empty line'; fail=1; }
"$T/dtrace" -C -x stdc=t -qn 'BEGIN { trace(__STDC__); exit(0); }' 2>&1 | grep -q warning && { echo 'stdc=t: a warning'; fail=1; }
# only the last argument must be used
check 0 '^2$' -qn 'BEGIN { trace($2); exit(0); }' 1 2
check 1 "extraneous argument '4' (\$3 is not referenced)" -qn 'BEGIN { exit(0); }' 2 3 4
# the verifier's log
check 0 '^BPF: ' -x engine=kernel -x bpflog -qn 'BEGIN { exit(0); }'
exit $fail
