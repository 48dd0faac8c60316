# Real programs with every entry and every return patched that src/program/text offers: their output must not change.
# `TEXT_STRESS=long sh test/sh/text_stress.sh` runs the long list (minutes), with offsets and system calls too.
# serial
set -u
tool=$BUILD/test/text_stress
[ -x "$tool" ] || { echo "no $tool"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
ran=0

"$tool" -- true 2>"$dir/err"
if [ $? = 99 ]; then
	cat "$dir/err"
	echo "ptrace of own children is not permitted"
	exit 77
fi

# same OPTIONS CMD ARG...: the same exit code and standard output
same() {
	options=$1
	shift
	command -v "$1" >/dev/null || return 0
	"$@" >"$dir/plain" 2>/dev/null </dev/null
	want=$?
	"$tool" $options -v -- "$@" >"$dir/patched" 2>"$dir/err" </dev/null
	got=$?
	ran=$((ran + 1))
	if [ $got != $want ] || ! cmp -s "$dir/plain" "$dir/patched"; then
		echo "FAILED: $options $*: exit code $got, not $want"
		diff "$dir/plain" "$dir/patched" | head -5
		grep text_stress: "$dir/err" | head -20
		failed=1
	elif ! grep -q ' [1-9][0-9]* hits' "$dir/err"; then
		echo "FAILED: $options $*: no probe fired"
		failed=1
	fi
}

cat >"$dir/script" <<'END'
for ((i = 0; i < 2000; i++)); do x[$i]=$((i * i % 97)); done
echo ${x[*]} | md5sum
printf '%s\n' {1..300} | sort -r | head -3
[[ abc123 =~ [0-9]+ ]] && echo $BASH_REMATCH
trap 'echo usr1' USR1
kill -USR1 $$
(exit 3)
echo $?
END
cat >"$dir/work.py" <<'END'
import json, re, zlib, hashlib, random
random.seed(3)
d = {str(i): [random.random() for _ in range(10)] for i in range(500)}
s = json.dumps(d)
assert json.loads(s) == d
z = zlib.compress(s.encode(), 6)
assert zlib.decompress(z) == s.encode()
print(len(s), hashlib.sha256(s.encode()).hexdigest(), len(z))
print(sum(len(m) for m in re.findall(r'0\.\d+[1-5]{2}', s)))
try:
    raise ValueError("raised")
except ValueError as e:
    print(e)
END
cat >"$dir/throw.cc" <<'END'
#include <csetjmp>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
static jmp_buf back;
struct counts { int *n; ~counts() { ++*n; } };
static int deep(int n, int *c) { counts k{c}; if (!n) throw std::runtime_error("deep"); return deep(n - 1, c) + 1; }
static void leap(int n) { if (!n) longjmp(back, 7); leap(n - 1); }
int main()
{
	int c = 0; long sum = 0;
	for (int i = 0; i < 2000; i++)
		try { sum += deep(i % 17, &c); } catch (const std::exception &e) { sum += e.what()[0]; }
	for (volatile int i = 0; i < 2000; i++)
		if (int r = setjmp(back)) sum += r; else leap(i % 9);
	std::map<std::string, int> m;
	for (int i = 0; i < 5000; i++) { std::ostringstream o; o << i % 777; m[o.str()] += i; }
	std::printf("%d %ld %zu\n", c, sum, m.size());
	return 3;
}
END
same "" bash "$dir/script"
same "-s -m 1" bash "$dir/script"
same "" python3 -I "$dir/work.py"
for how in "-O2" "-O2 -static" "-O2 -no-pie -fno-pie" "-O2 -s" "-O0 -fcf-protection=none"; do
	c++ $how "$dir/throw.cc" -o "$dir/throw" 2>/dev/null || continue
	same "" "$dir/throw"
	same "-s -m 2" "$dir/throw"
done
cat >"$dir/c.c" <<'END'
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void)
{
	int a[5000]; regex_t r;
	for (int i = 0; i < 5000; i++) a[i] = i * 7919 % 5003;
	qsort(a, 5000, 4, cmp);
	regcomp(&r, "^a(b+)c$", REG_EXTENDED);
	printf("%d %d %d\n", a[0], a[4999], regexec(&r, "abbc", 0, 0, 0));
	return 0;
}
END
if command -v musl-gcc >/dev/null && musl-gcc -O2 -static "$dir/c.c" -o "$dir/musl" 2>/dev/null; then
	same "-s -m 3" "$dir/musl"
fi

if [ "${TEXT_STRESS:-}" = long ]; then
	for seed in 0 11 12 13; do
		o=""
		[ $seed = 0 ] || o="-s -m $seed"
		same "$o" perl -e 'my %h; for (1..50000) { $h{$_ % 1000} .= chr(65 + $_ % 26) }
			my $s = join ",", map {"$_=$h{$_}"} sort keys %h; $s =~ s/A(B+)C/<$1>/g;
			print length($s), " ", unpack("%32C*", $s), "\n"; eval { die "x\n" }; print $@;'
		same "$o" sqlite3 :memory: 'create table t(a,b); with recursive c(x) as (select 1 union all
			select x+1 from c where x<5000) insert into t select x, x*x%101 from c;
			select b,count(*),sum(a) from t group by b order by 2 desc, 1 limit 5;'
		same "$o" git -C . log --stat -5 --format=%H
		same "$o" openssl dgst -sha512 "$dir/throw"
		same "$o" gcc -O2 -S -o - "$dir/c.c"
		same "$o" g++ -O2 -S -o - "$dir/throw.cc"
		same "$o" clang -O2 -S -o - "$dir/c.c"
		same "$o" gdb -batch -ex 'p 1+2' -ex 'info functions main' /bin/true
		same "$o" python3 -I "$dir/work.py"
		same "$o" bash "$dir/script"
	done
	same "" node -e 'let m={};for(let i=0;i<1e5;i++){m["k"+i%999]=(m["k"+i%999]||0)+i}
		console.log(Object.keys(m).length,JSON.stringify(m).length,/a(b+)c/.exec("xabbbc")[1])'
	same "" java -version
	same "" cargo --version
	same "" rustc --version
fi
echo "$ran runs"
exit $failed
