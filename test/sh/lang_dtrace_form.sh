#!/bin/sh
# covers: tregs
# Under the name dtrace, messages and listings have the form that scripts around DTrace look for.
set -u
. "$(dirname "$0")/as_dtrace.inc"

check 1 "^dtrace: invalid probe specifier BEGIN: extraneous argument '10'" -n BEGIN -n END 10
"$T/dtrace" -b 1k -b 2g -e >"$T/out" 2>&1 && [ ! -s "$T/out" ] || { echo "-e alone"; cat "$T/out"; fail=1; }
# the preprocessor's lines are the script's
echo 'BEGIN { trace(NO_SUCH); }' >"$T/cpp.d"
check 1 "^dtrace: failed to compile script $T/cpp.d: line 1: failed to resolve NO_SUCH" -C -s "$T/cpp.d"
echo '#error no' >>"$T/cpp.d"
check 1 "^dtrace: failed to compile script $T/cpp.d: Preprocessor failed to process input program\$" -C -s "$T/cpp.d"
check 1 '^dtrace: failed to set -x bufsize: Invalid value for specified option$' -x bufsize=-1 -n BEGIN
check 1 '^dtrace: failed to open /nonexistent.d: No such file or directory$' -s /nonexistent.d
check 1 ': Overspecified probe description$' -lm profile:::profile-97
check 0 '^dtrace: failed to match :nosuchmodule::: No probe matches description$' -lm nosuchmodule
check 1 'invalid probe identifier 0: Unknown probe identifier$' -i 0
check 1 'probe description :::i23 does not match any probes$' -i i23
check 1 'BEGIN { $1; }: macro argument $1 constant 0x12345678123456781 results in integer overflow$' -n 'BEGIN { $1; }' 0x12345678123456781
check 1 'Insufficient tuple registers to generate code$' -x tregs=1 -n 'BEGIN { @[1, 2] = count(); }'
check 0 '^dtrace: Oracle D 2\.0$' -V
check 0 '^		Data Semantics:   Unstable$' -e -v -n 'BEGIN { exit(0); }'
# the first error ends it
check 1 'Unknown variable name' -n 'BEGIN { trace(no_such); trace(no_other); }'
[ "$(grep -c Unknown "$T/out")" = 1 ] || { cat "$T/out"; fail=1; }
# listings
check 0 '^Disassembly of clause :::BEGIN$' -S -e -n 'char c; short v; BEGIN { v = pid; exit(0); }'
grep -q '^0000 00000: [0-9a-f][0-9a-f] ' "$T/out" || { cat "$T/out"; fail=1; }
grep -Eq '^v +[0-9a-f]+ +2 +scl glb - +w +D type \(integer\) \(size 2\)$' "$T/out" || { cat "$T/out"; fail=1; }
grep -Eq '^pid +[0-9a-f]+ +scl glb - +r +D type \(integer\) \(size 4\)$' "$T/out" || { cat "$T/out"; fail=1; }
check 0 '' -S -e -n 'this char c; this int v; this char a[5]; this long l; char g; short h[5]; string s; self char x; self long t; BEGIN { this->v = 1; this->a[0] = 1; this->l = 1; self->t = 1; h[1] = 2; s = "x"; exit(0); }'
for line in 'h +[0-9a-f]+ +2 +scl glb' 's +[0-9a-f]+ +16 +scl glb .*size 256'  'v +[0-9a-f]+ +4 +scl loc' 'a +[0-9a-f]+ +8 +scl loc' 'l +[0-9a-f]+ +16 +scl loc' 't +[0-9a-f]+ +0 +scl tls'; do
	grep -Eq "^$line" "$T/out" || { echo "no line $line"; cat "$T/out"; fail=1; }
done
check 0 'args\[0\]: struct mutex \*$' -lvn lockstat:::adaptive-acquire
check 0 'args\[0\]: spinlock_t \*$' -lvn lockstat:::spin-spin
check 1 'D_XLATE_NOCONV' -x errtags -n 'BEGIN { trace(curpsinfo->pr_size); }'
check 1 'D_XLATE_NOCONV' -x errtags -n 'BEGIN { trace(curlwpsinfo->pr_nice); }'
exit $fail
