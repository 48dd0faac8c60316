# Functions called a known number of times, counted by keys that each probe knows: every engine and way to a slot (the probe's
# number, a constant, a table) gives the same rows, and functions never called have none.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/calls.c" <<'C'
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#define F(n) __attribute__((noipa)) uint64_t f##n(uint64_t a) { __asm__ volatile(""); return a * 31 + (a >> 3) + 0x12345; }
F(0) F(1) F(2) F(3)
int main(int argc, char **argv)
{
	uint64_t r = 1;

	for (int i = 0; i < 1000; i++)
		r = f0(r);
	for (int i = 0; i < 200; i++)
		r = f1(r);
	for (int i = 0; i < 30; i++)
		r = f2(r);
	for (int i = 0; argc > 1 && i < 3; i++) {
		pid_t child = fork();

		for (int k = 0; !child && k < 10; k++)
			r = f3(r);
		if (!child)
			_exit(0);
		waitpid(child, 0, 0);
	}
	return r == 1 ? (int)f3(r) : 0;
}
C
cc -O2 -o "$dir/calls" "$dir/calls.c"
cat >"$dir/calls.d" <<'D'
#pragma D option quiet
BEGIN { @table["f1"] = count(); }
pid$target:a.out:f?:entry
{
	@number[probefunc] = count();
	@constant[probename, probemod] = count();
	@table[probefunc] = count();
	@words[probefunc] = sum(2);
	@both[probefunc] = count();
}
pid$target:a.out:f?:return { @both[probefunc] = count(); }
END
{
	printa("number %s %@d\n", @number);
	printa("constant %s %s %@d\n", @constant);
	printa("table %s %@d\n", @table);
	printa("words %s %@d\n", @words);
	printa("both %s %@d\n", @both);
}
D
cat >"$dir/expected" <<'E'
number f2 30
number f1 200
number f0 1000
constant entry calls 1230
table f2 30
table f1 201
table f0 1000
words f2 60
words f1 400
words f0 2000
both f2 60
both f1 400
both f0 2000
E
engines=inproc
"$DESCRY" -q -x engine=kernel -n 'BEGIN { exit(0); }' >/dev/null 2>&1 && engines="$engines kernel"
for engine in $engines; do
	"$DESCRY" -x engine="$engine" -s "$dir/calls.d" -c "$dir/calls" >"$dir/out"
	grep . "$dir/out" >"$dir/got"
	diff -u "$dir/expected" "$dir/got" || { echo "engine=$engine"; exit 1; }
	# forked children count in the same slots
	"$DESCRY" -q -x follow -x engine="$engine" -n 'pid$target:a.out:f[13]:entry { @[probefunc] = count(); }
		END { printa("%s %@d\n", @); }' -c "$dir/calls children" | grep . >"$dir/got"
	printf 'f3 30\nf1 200\n' | diff -u - "$dir/got" || { echo "engine=$engine, children"; exit 1; }
done
# More aggregations than maps that the kernel lets a program use: there they share maps and are by key, and the rows are the same.
{
	printf '#pragma D option quiet\nBEGIN { @last["END", "a"] = sum(2);'
	for i in $(seq 80); do printf ' @a%d[probename, "a"] = sum(%d);' "$i" "$i"; done
	printf ' exit(0); }\nEND { @last[probename, "a"] = sum(1);'
	for i in $(seq 80); do printf ' @a%d[probename, "a"] = sum(1); printa("%d %%s %%s %%@d\\n", @a%d);' "$i" "$i" "$i"; done
	printf ' printa("last %%s %%s %%@d\\n", @last); }\n'
} >"$dir/many.d"
{
	for i in $(seq 80); do printf '%d %s a %d\n' "$i" END 1 "$i" BEGIN "$i"; done
	echo "last END a 3"
} | sort >"$dir/expected"
for engine in interp $engines; do
	"$DESCRY" -x engine="$engine" -s "$dir/many.d" | grep . | sort >"$dir/got"
	diff -u "$dir/expected" "$dir/got" || { echo "engine=$engine, many"; exit 1; }
done
# No table of names is made for them, and no key is looked up.
"$DESCRY" -x engine=inproc -d ebpf -n 'pid$target:a.out:f?:entry { @[probefunc] = count(); }' -c "$dir/calls" >"$dir/image"
grep -q ', 4 slots$' "$dir/image"
