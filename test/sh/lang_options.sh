# Options of the language and the command line: each has its documented effect.
# covers: bpflogsize cpphdrs ctfpath ctypes debugassert disasm dofstashpath dtypes grabanon jstackframes jstackstrsize kdefs late lazyload ldpath linkmode linknommap lockmem modpath nusdtprobes pgmax preallocate procfspath syslibdir sysslice udefs unodefs useruid 
set -u
fail=0
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

# check STATUS PATTERN COMMAND...: exit status, and a line of the output (both streams) that matches
check() {
	want=$1 pattern=$2
	shift 2
	"$@" >"$T/out" 2>&1
	got=$?
	if [ "$got" != "$want" ] || ! grep -qe "$pattern" "$T/out"; then
		echo "$*: exit $got (expected $want), expected a line like: $pattern"
		cat "$T/out"
		fail=1
	fi
}
d() { "$DESCRY" -x engine=interp "$@"; }

# those without effect are taken, with a value and without
for o in $(sed -n 's/^# covers: //p' "$0"); do
	check 0 'done' d -x "$o" -x "$o=1" -qn 'BEGIN { printf("done\n"); exit(0); }'
done

# aggregations
check 0 '^    \[CPU 0\] *1$' d -x aggpercpu -qn 'BEGIN { @ = count(); exit(0); }'
check 0 '^ *1 |@\{38\}   1' d -x aggzoom -qn 'BEGIN { @ = quantize(1); @ = quantize(8); exit(0); }'
# the tree, as DTrace lists it: parsed, bound, compiled
tree() { "$DESCRY" -x engine=interp -x tree="$1" -e -n 'BEGIN { p = alloca(8); q = p; x = (int)1 + 2; @[x, "k"] = sum(x); trace(x); }' 2>&1; }
check 0 '^    ACTION$' tree 1
check 0 '^        OP2 = (type=<-1> attr=\[s/s/c\] flags=0)$' tree 1
check 0 '^    CTXATTR \[i/i/u\]$' tree 1
check 0 '^            INT 0x8 (type=<int> attr=\[s/s/c\] flags=SIGN,COOK)$' tree 1
check 0 '^  CLAUSE attr=' tree 2
check 0 '^  CTXATTR \[u/u/c\]$' tree 2
check 0 '^    D PRODUCER attr=' tree 2
check 0 '^          INT 0x7 (type=<int>' d -x tree=2 -x strsize=7 -e -n 'BEGIN { s = copyinstr(1); }'
check 0 'VARIABLE (normally-assigned) x (type=<int> .*LVAL,WRITE)$' tree 4
check 0 'VARIABLE (alloca-assigned) q .*ALLOCA)$' tree 4
check 0 '^        STRING "k" (type=<string> attr=\[s/s/c\] flags=COOK,REF,DPTR)$' tree 2
check 0 '^Parse tree (Pass 1):$' tree 5
check 0 '^Parse tree (Pass 3):$' tree 5
check 1 '^0$' sh -c '"$DESCRY" -x tree=5 -e -n BEGIN 2>&1 | grep -c "Pass 2"'
check 0 '^Parse tree: end$' tree 2
# the libraries of -L, each before those it depends on
mkdir "$T/lib"
printf '#pragma D depends_on library middle.d\ninline int top = middle + 1;\n' >"$T/lib/atop.d"
printf '#pragma D depends_on library zbottom.d\ninline int middle = bottom + 1;\n' >"$T/lib/middle.d"
printf 'inline int bottom = 40;\n' >"$T/lib/zbottom.d"
for variable in DESCRY_DEBUG DTRACE_DEBUG; do
	check 0 '^atop middle zbottom $' sh -c '"$@" 2>&1 | sed -n "s|.*/lib/\([a-z]*\)\.d (.*|\1|p" | tr "\n" " "; echo' - \
		env "$variable=1" "$DESCRY" -e -L "$T/lib" -n 'BEGIN { trace(top); }'
done
check 1 '^0$' sh -c '"$@" 2>&1 | grep -c DEBUG' - env DESCRY_DEBUG= "$DESCRY" -e -L "$T/lib" -n 'BEGIN { trace(top); }'
# sizes and limits
check 0 'fault 5' d -x scratchsize=64 -qn 'BEGIN { n = 100; p = alloca(n); } ERROR { printf("fault %d\n", arg4); exit(0); }'
check 0 '1 speculative drop' d -x specsize=64 -n 'BEGIN { s = speculation(); } BEGIN { speculate(s); tracemem(alloca(100), 100); } BEGIN { commit(s); } BEGIN { exit(0); }'
check 0 '^ .weight' d -x printsize=8 -qn 'struct w { long weight, other; }; BEGIN { this->p = (struct w *)alloca(16); this->p->weight = 1; this->p->other = 2; print(this->p); exit(0); }'
check 0 'fault 12 12 7' d -x looplimit=7 -qn 'BEGIN { while (1) i++; } ERROR { printf("fault %d 12 %d\n", arg4, i); exit(0); }'
check 1 'pcapsize is 8.*D_PCAP_SIZE' d -x errtags -x pcapsize=8 -n 'BEGIN { pcap(0, 1); }'
check 1 'failed to set -x bufsize=-1' d -x bufsize=-1 -n 'BEGIN { exit(0); }'
check 1 'failed to set -x strsize=1' d -x strsize=1 -n 'BEGIN { exit(0); }'
check 1 'Enabling exceeds size of buffer' d -x bufsize=59 -n 'BEGIN { exit(0); }'
check 1 'Enabling exceeds size of buffer' d -x dynvarsize=15 -n 'BEGIN { a[1] = 1; exit(0); }'
check 0 '^2 3 4$' d -x dynvarsize=48 -qn 'BEGIN { a[1] = 1; a[2] = 2; a[3] = 3; a[1] = 0; a[4] = 4; printf("%d %d %d\n", a[2], a[3], a[4]); exit(0); }'
check 1 'D_TUPLE_REGS' d -x tregs=3 -x errtags -n 'BEGIN { @[1, 2, 3, 4] = count(); }'
check 0 '^ *1 *2 *3 *4 *1$' d -x tregs=4 -qn 'BEGIN { @[1, 2, 3, 4] = count(); exit(0); }'
check 0 '^5$' d -x strsize=5 -qn 'BEGIN { printf("%d\n", strlen("abcdefgh")); exit(0); }'
# kept data
check 0 '^ 298 299 end$' sh -c '"$DESCRY" -x engine=interp -q -x bufpolicy=ring -x bufsize=4k -n "tick-2000hz { printf(\" %d\", i++); } tick-2000hz /i == 300/ { exit(0); } END { printf(\" end\\n\"); }" | grep -o " 298 299 end"'
check 0 '^ 0 1 2 3$' sh -c '"$DESCRY" -x engine=interp -q -x bufpolicy=fill -x bufsize=4k -n "tick-2000hz { printf(\" %d\", i++); } END { printf(\"\\n\"); }" | grep -o "^ 0 1 2 3"'
check 0 'done' d -x bufresize=manual -x cleanrate=50hz -x statusrate=100ms -x quietresize -x temporal=0 -x maxframes=20 -x stackframes=3 -x switchrate=10ms -qn 'BEGIN { printf("done\n"); exit(0); }'
check 0 'done' d -x stdc=a -x version=1.0 -x verbose=0 -x amin=Evolving/Evolving/Common -qn 'BEGIN { printf("done\n"); exit(0); }'
# nothing needs cleaning: one speculation serves any number, one after the other
check 0 '^1 1$' d -x cleanrate=1s -x nspec=1 -qn 'BEGIN { a = speculation(); } BEGIN { discard(a); } BEGIN { b = speculation(); printf("%d %d\n", a, b); exit(0); }'
group=/sys/fs/cgroup/memory/descry-test-$$
if mkdir "$group" 2>/dev/null && echo 150M 2>/dev/null >"$group/memory.limit_in_bytes"; then
	small() { sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$DESCRY" -x engine=kernel -x bufsize=512m "$@" -n 'BEGIN { exit(0); }'; }
	small >"$T/out" 2>&1
	case $? in
	0)	check 0 'buffer data reduced to' small
		small -x quietresize >"$T/quiet" 2>&1
		check 1 '^0$' grep -c 'reduced to' "$T/quiet" ;;
	*) grep -q 'ermi' "$T/out" || { cat "$T/out"; fail=1; } ;;
	esac
fi
rmdir "$group" 2>/dev/null
# the language of another time
check 0 '^mine' d -x version=1.10 -qn 'inline string strtoll = "mine"; BEGIN { printf("%s\n", strtoll); exit(0); }'
check 0 '^1$' d -x version=1.0 -qn 'int freopen; BEGIN { freopen = 1; printf("%d\n", freopen); exit(0); }'
check 1 'D_FUNC_UNDEF' d -x errtags -x version=1.10 -n 'BEGIN { trace(json("{}", "a")); }'
check 1 'D_IDENT_UNDEF' d -x errtags -x version=1.10 -n 'BEGIN { trace(execargs); }'
check 0 '^5$' d -x version=1.10 -qn 'BEGIN { execargs = 5; printf("%d\n", execargs); exit(0); }'
check 0 'done' d -x version=1.11 -qn 'BEGIN { trace(json("{}", "a")); printf("done\n"); exit(0); }'
check 1 'D_VERS_UNDEF' d -x errtags -x version=1.99 -n 'BEGIN { exit(0); }'
check 1 'D_VERS_INVAL' d -x errtags -x version=x -n 'BEGIN { exit(0); }'
check 1 'bufpolicy' d -x bufpolicy=nonsense -n BEGIN
# names and libraries
check 0 '^1$' d -x amin=Evolving/Evolving/Common -qn 'BEGIN { printf("%d\n", pid > 0); exit(0); }'
check 1 'D_ATTR_MIN.*: .*curthread (Stable/Private/Common)\|curthread (Stable/Private/Common).*D_ATTR_MIN' d -x errtags -x amin=Evolving/Evolving/Common -n 'BEGIN { trace(curthread); }'
check 1 'D_ARGS_XLATOR' d -x errtags -x nolibs -n 'io:::start { trace(args[0]->b_bcount); }'
check 0 'fault 1' d -x knodefs -qn 'BEGIN { trace(`no_such_symbol_at_all); } ERROR { printf("fault %d\n", arg4); exit(0); }'
mkdir -p "$T/lib"
echo 'inline int LIBRARY_SAYS = 42;' >"$T/lib/one.d"
printf '#pragma D depends_on library one.d\ninline int SECOND_SAYS = LIBRARY_SAYS + 1;\n' >"$T/lib/two.d"
printf '#pragma D depends_on library none.d\ninline int THIRD_SAYS = 1;\n' >"$T/three.d"
check 0 '^43$' d -L "$T/lib" -qn 'BEGIN { printf("%d\n", SECOND_SAYS); exit(0); }'
check 0 '^42$' d -x "libdir=$T/lib" -qn 'BEGIN { printf("%d\n", LIBRARY_SAYS); exit(0); }'
# all files of such a directory are read, even unused ones; a file may not depend on itself
mkdir "$T/lib3" "$T/lib4" "$T/lib5"
mv "$T/three.d" "$T/lib3"
check 1 'D_PRAGMA_DEPEND' d -x errtags -L "$T/lib3" -qn 'BEGIN { exit(0); }'
echo '#pragma D depends_on library two.d' >"$T/lib4/one.d"
echo '#pragma D depends_on library three.d' >"$T/lib4/two.d"
echo '#pragma D depends_on library one.d' >"$T/lib4/three.d"
check 1 'D_PRAGMA_DEPEND' d -x errtags -L "$T/lib4" -e -n 'BEGIN { exit(0); }'
echo 'BEGIN { no_such_action(); }' >"$T/lib5/one.d"
check 1 'no_such_action' d -L "$T/lib5" -e -n 'BEGIN { exit(0); }'
mkdir "$T/lib2"
mkdir "$T/lib2/dir.d"
check 0 'D_LIBRARY' d -x errtags -L "$T/lib2" -qn 'BEGIN { printf("%d\n", PCAP_IP); exit(0); }'
# the preprocessor
echo '#define SEVEN 7' >"$T/seven.h"
printf '#include "seven.h"\nBEGIN { printf("%%d\\n", SEVEN); exit(0); }\n' >"$T/inc.d"
check 0 '^7$' d -C -I "$T" -q -s "$T/inc.d"
check 0 '^7$' d -x cpp -x "incdir=$T" -q -s "$T/inc.d"
check 0 '^8$' d -C -x cppargs=-DEIGHT=8 -qn 'BEGIN { printf("%d\n", EIGHT); exit(0); }'
check 0 '^9$' d -C -D N=9 -U M -qn 'BEGIN { printf("%d\n", N); exit(0); }'
# headers of C: their inline functions, words of GNU C, and types that the D library has with another sign
printf '#include <sys/socket.h>\n#include <netinet/in.h>\n#include <sys/resource.h>\n#include <linux/types.h>\n' >"$T/c.d"
printf 'BEGIN { s = (__s8)255; printf("%%d %%d %%d %%d\\n", AF_INET6, sizeof (struct sockaddr_in), sizeof (id_t), s); exit(0); }\n' >>"$T/c.d"
check 0 '^10 16 4 -1$' d -C -q -s "$T/c.d"
printf 'typedef unsigned int id_t;\ntypedef long projid_t;\ntypedef int mine_t;\nBEGIN { exit(sizeof (projid_t) == 8 ? 0 : 1); }\n' >"$T/types.d"
check 0 '' d -q -s "$T/types.d"
echo 'typedef unsigned int mine_t;' >>"$T/types.d"
check 1 'types.d:5:[0-9]*: error: identifier redeclared: mine_t' d -q -s "$T/types.d"
check 1 'identifier redeclared: id_t' d -qn 'typedef long id_t; BEGIN { exit(0); }'
printf '#!/usr/sbin/dtrace -Cs\n#include "seven.h"\nBEGIN { printf("%%d\\n", SEVEN); exit(0); }\nBEGIN { exit(nosuch); }\n' >"$T/script.d"
check 1 "script.d:4:14: error" d -C -q -s "$T/script.d"
sed -i '/nosuch/d' "$T/script.d"
check 0 '^7$' d -C -q -s "$T/script.d"
echo 'inline int HERE = 11;' >"$T/lib/here.h"
printf '#include "here.h"\n#include "none.h"\nBEGIN { printf("%%d\\n", HERE); exit(0); }\n' >"$T/cwd.d"
check 1 'cwd.d:2:.*none.h' sh -c "cd '$T/lib' && '$DESCRY' -x engine=interp -C -q -s ../cwd.d"
sed -i '/none/d' "$T/cwd.d"
check 0 '^11$' sh -c "cd '$T/lib' && '$DESCRY' -x engine=interp -C -q -s ../cwd.d"
printf '#define T(x) #x\n#define S(x) T(x)\nBEGIN { printf("%%s %%s\\n", S(__STDC__), S(unix)); exit(0); }\n' >"$T/std.d"
check 0 '^1 1$' d -C -q -s "$T/std.d"
check 0 '^1 unix$' d -C -x stdc=c -q -s "$T/std.d"
check 0 '^0 1$' d -C -X t -q -s "$T/std.d"
printf '#define GLUE(a) a/**/b\ninline string ab = "glued"; BEGIN { printf("%%s\\n", GLUE(a)); exit(0); }\n' >"$T/old.d"
check 0 '^glued$' d -C -X s -q -s "$T/old.d"
check 2 '-X wants' d -X q -n 'BEGIN { exit(0); }'
check 1 'no-such-cpp' d -C -x cpppath=/no-such-cpp -qn 'BEGIN { exit(0); }'
check 0 'seven.h' d -C -H -I "$T" -q -s "$T/inc.d"
# forms of probe descriptions
check 0 ':BEGIN' d -i 1 -n 'BEGIN { exit(0); }'
check 0 'both' d -qn 'BEGIN, tick-1ms { printf("both\n"); } tick-2ms { exit(0); }'
check 1 'does not match' d -f no_such_function
check 1 'does not match' d -m no_such_module
check 0 'none' d -Z -qn 'no:such:probe: { } BEGIN { printf("none\n"); exit(0); }'
# the command line
check 0 'done' d -b 1m -qn 'BEGIN { printf("done\n"); exit(0); }'
check 0 '^map 0: state' d -S -n 'BEGIN { exit(0); }'
check 0 'descry' d -V
check 0 'done' d -X s -qn 'BEGIN { printf("done\n"); exit(0); }'
check 0 'unused' d -x argref -qn 'BEGIN { printf("unused\n"); exit(0); }' more
check 1 'D_MACRO_UNUSED' d -x errtags -qn 'BEGIN { exit(0); }' more
d -o "$T/file" -qn 'BEGIN { printf("in a file\n"); exit(0); }'
check 0 'in a file' cat "$T/file"
printf 'provider app { probe go(int, string); };\n' >"$T/app.d"
(cd "$T" && "$DESCRY" -h -s app.d)
check 0 'APP_GO(' cat "$T/app.h"
check 0 'APP_GO_ENABLED' cat "$T/app.h"
(cd "$T" && "$DESCRY" -G -s app.d)
check 0 '^.ELF' head -c 4 "$T/app.o"
# bytes instead of text
check 0 '^ *0: 61 62 63 00' d -x rawbytes -qn 'BEGIN { this->p = (char *)alloca(4); bcopy("abc", this->p, 4); trace(*(char (*)[4])this->p); exit(0); }'
# macros
check 0 '^1 1 1$' d -qn 'BEGIN { printf("%d %d %d\n", $pgid > 0, $sid >= 0, $ppid > 0); exit(0); }'
# names of the types
check 0 '^8 8 1 2 4 8 8$' d -qn 'intptr_t a; ptrdiff_t b; uchar_t c; ushort_t d; uint_t e; ulong_t f; longlong_t g; BEGIN { printf("%d %d %d %d %d %d %d\n", sizeof(a), sizeof(b), sizeof(c), sizeof(d), sizeof(e), sizeof(f), sizeof(g)); exit(0); }'
# arguments that a probe does not have are 0; a stack works everywhere
check 0 '^0 0 0 1$' d -qn 'BEGIN { printf("%d %d %d %d\n", arg6, arg8, arg9, ucaller == ucaller); exit(0); }'
check 0 'fault 11' d -qn 'int a[4]; BEGIN { i = 9; a[i] = 1; } ERROR { printf("fault %d\n", arg4); exit(0); }' # index out of bounds
check 0 'out of scratch space' d -n 'BEGIN { n = 1000000; this->p = alloca(n); } BEGIN { exit(0); }'
check 0 'fault 10' d -qn 'BEGIN { n = 1000000; bcopy(alloca(8), alloca(8), n); } ERROR { printf("fault %d\n", arg4); exit(0); }' # invalid size
# conversions of networks
check 0 '^::1 02:00:00:00:00:ff$' d -qn 'BEGIN { this->a = (unsigned char *)alloca(16); this->a[15] = 1; this->m = (unsigned char *)alloca(6); this->m[0] = 2; this->m[5] = 0xff; printf("%s %s\n", inet_ntoa6((struct in6_addr *)this->a), link_ntop(1, this->m)); exit(0); }'
check 0 '^100007f 80$' d -qn 'BEGIN { printf("%H %j\n", 0x0100007f, 80); exit(0); }'
# losses, with their tags
check 0 '\[DTRACEDROP_AGGREGATION\] [0-9]* aggregation drops on CPU' d -x droptags -x aggsize=256 -qn 'BEGIN { for (int i = 0; i < 90; i++) @a[i] = count(); trunc(@a); exit(0); }'
check 0 '\[DTRACEDROP_DYNAMIC\] [0-9]* dynamic variable drops' d -x droptags -x dynvarsize=1k -qn 'BEGIN { for (int i = 0; i < 90; i++) a[i] = 1; exit(0); }'
check 0 '\[DTRACEDROP_PRINCIPAL\] [0-9]* drops* on CPU' d -x droptags -b 4k -qn 'BEGIN { for (int i = 0; i < 90; i++) printf("%200s\n", execname); } tick-300ms { exit(0); }'
check 0 '\[DTRACEDROP_DBLERROR\] 1 error in ERROR probe enabling' d -x droptags -qn 'BEGIN { x = *(int *)8; } ERROR { y = *(int *)16; } BEGIN { exit(0); }'
check 0 '\[DTRACEDROP_SPEC\] 1 speculative drop' d -x droptags -x specsize=64 -n 'BEGIN { s = speculation(); } BEGIN { speculate(s); tracemem(alloca(100), 100); } BEGIN { commit(s); } BEGIN { exit(0); }'
# under DTrace's name: its messages, and no others
ln -s "$(command -v "$DESCRY")" "$T/dtrace"
check 0 '^	*Identifier Names: Stable$' "$T/dtrace" -lvn BEGIN
check 0 '^	Argument Attributes$' "$T/dtrace" -lvn BEGIN
check 0 '^		Dependency Class: ISA$' "$T/dtrace" -lvn 'syscall::read:entry'
check 1 '^dtrace: invalid probe specifier syscall::execvw:return: probe description syscall::execvw:return does not match any probes$' "$T/dtrace" -n 'syscall::execvw:return'
check 1 'did you mean syscall:vmlinux:execve:return' d -n 'syscall::execvw:return'
test "$("$T/dtrace" -n 'syscall::execvw:return' 2>&1 | wc -l)" = 1 || { echo "more than one line under DTrace's name"; fail=1; }
check 1 '^dtrace: invalid probe specifier BEGIN { trace(nosuch); }: in action list: failed to resolve nosuch' "$T/dtrace" -n 'BEGIN { trace(nosuch); }'
# types that are not there
check 1 'did you mean struct task_struct' d -n 'BEGIN { this->p = (struct task_strut *)0; trace(this->p->pid); }'
check 1 'did you mean uint16_t' d -n 'BEGIN { trace((uint46_t *)5); }'
check 1 'struct quux_nowhere.*which is not known here' d -n 'BEGIN { trace(sizeof (struct quux_nowhere)); }'
check 1 'no struct quux_nowhere definition is available' d -n 'BEGIN { trace(offsetof(struct quux_nowhere, x)); }'
# probes that are not there
check 1 'there are entry, return and the offsets' d -n 'pid$target:libc.so.6:malloc:enter { }' -c true
check 1 'did you mean pid[0-9]*:libc.so.6:malloc:entry' d -n 'pid$target:libcc:malloc:entry { }' -c true
check 1 'did you mean syscall::read:?' d -n 'syscall::read { }'
check 1 'the kernel counts this without a tracepoint' d -n 'sysinfo:::namei { }'
check 2 'anonymous tracing' d -A -n BEGIN
# values that are too large
check 0 'strsize=102400: 4096 is the maximum' d -x strsize=100k -qn 'BEGIN { exit(0); }'
check 0 'nspec=1000: 64 is the maximum' d -x nspec=1000 -qn 'BEGIN { exit(0); }'
check 1 'failed to set cpu=100000: this machine has CPUs 0 to' d -x cpu=100000 -qn 'BEGIN { exit(0); }'
check 1 'failed to set cpu=-5: this machine has CPUs 0 to' d -x cpu=-5 -qn 'BEGIN { exit(0); }'
# things that no program may do
check 1 'breakpoint( ) is not available' d -wn 'BEGIN { breakpoint(); }'
check 1 'pcap.*D_PROTO_ARG' d -x errtags -n 'BEGIN { pcap("x", 1); }'
check 1 'pcap.*D_PCAP_PROTO' d -x errtags -n 'BEGIN { x = 1; pcap(0, x); }'
# many aggregations share a map, where a program may not use that many
"$DESCRY" -x engine=kernel -qn 'BEGIN { exit(0); }' 2>/dev/null &&
	check 0 '^1 1$' "$DESCRY" -qn "BEGIN { $(i=0; while [ $i -lt 70 ]; do echo "@a$i = count();"; i=$((i + 1)); done) printa(\"%@d %@d\n\", @a0, @a69); exit(0); }"
# the loop that empties buffers notices exit() too
check 0 '^later$' d -x switchrate=1s -qn 'BEGIN { t = timestamp; exit(0); } END { printf("%s\n", timestamp - t > 500000000 ? "later" : "at once"); }'
# a name that cannot be opened is an error of the moment, and the output stays
check 0 '^on$' d -w -qn 'BEGIN { freopen(".."); printf("on\n"); exit(0); }'
# registers: the existing ones
check 0 '^done$' d -x iregs=8 -qn 'BEGIN { printf("done\n"); exit(0); }'
check 1 'Insufficient registers' d -x iregs=7 -qn 'BEGIN { exit(0); }'
check 1 'Invalid value' d -x iregs=9 -qn 'BEGIN { exit(0); }'
check 1 'Invalid value' d -x nspec=-1 -qn 'BEGIN { exit(0); }'
# verbose prints the generated code
check 0 'ringbuf_submit' d -x verbose -n 'BEGIN { exit(0); }'
# core: the end of descry
mkdir "$T/core"
(cd "$T/core" && exec "$DESCRY" -x core -e -n 'BEGIN { exit(0); }') >"$T/out" 2>&1
[ $? = 134 ] || { echo "-x core: no SIGABRT"; fail=1; }
check 0 '^descry DEBUG [1-9][0-9]*: engine interp: [1-9]' d -x debug -qn 'BEGIN { trace(curpsinfo->pr_pid); exit(0); }'
check 0 'library .*procfs' d -x debug -qn 'BEGIN { trace(curpsinfo->pr_pid); exit(0); }'
# arguments are looked at before probes
check 1 'extraneous argument' d -n 'nosuchprobe { exit(0); }' 10
check 1 'no probes matched' d -n 'typedef int number;'
# a program that enables nothing ends at once
check 1 'no probes matched' d -n 'inline int X = 1;'
check 0 '^ *1$' d -x cpp -x cppargs='-DA=1 -DB=A' -qn 'BEGIN { trace(B); exit(0); }'
check 0 '^ *1$' env DESCRY_OPT_CPPARGS='-DA=1 -DB=A' "$DESCRY" -x engine=interp -C -qn 'BEGIN { trace(B); exit(0); }'
exit $fail
