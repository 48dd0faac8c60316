#!/bin/sh
# What stands in one place of the sources stays there: the mappings of a process, the marks behind names of functions,
# the names of the engines. A file of C says first what it does, and is of a size that can be read. Names of files and of
# private functions do not recur.
set -u
fail=0
wrong() {
	echo "$1"
	fail=1
}

# One struct for a mapping: no other has a range, an offset and the inode of a file.
structs=$(grep -rlE 'inode' src cmd agent --include='*.[ch]' | xargs awk '
	/^struct [a-z_0-9]+ \{/ { name = FILENAME ": " $2; body = "" }
	{ body = body " " $0 }
	/^\}/ { if (name && body ~ / (end|hi)[,;]/ && body ~ / offset[,;]/ && body ~ / inode[,;]/) print name; name = "" }')
[ "$structs" = "src/program/space/mapping.h: mapping" ] || wrong "not one struct for a mapping: $structs"

# The mappings are read by program/space/ only. base/mapped.c reads this process's own in a signal handler, which may not allocate.
for f in $(grep -rlE '"/proc/(%[a-z]+|self)/(maps|map_files|smaps)"' src cmd agent bpf); do
	case $f in
	src/program/space/* | src/base/mapped.c) ;;
	*) wrong "$f reads the mappings of a process: program/space/ does that" ;;
	esac
done

# Writers put marks such as _[k] behind names, by data/frame.c; nothing reads them back.
for f in $(grep -rlE '"_\[' src cmd agent bpf); do
	case $f in
	src/data/frame.c) ;;
	*) grep -nE '"_\[[a-z]\]"' "$f" && wrong "$f has a mark of a frame: data/frame.c has them" ;;
	esac
done

# Files are made by base/outfile.c, which follows no link at a name of descry's own.
for f in $(grep -rlE 'O_CREAT|O_TMPFILE|O_TRUNC|\<(mkostemps?|mkstemps?|mkdtemp|tmpfile|tmpnam|tempnam)\(|\<fopen\([^;]*, "[wa]|\<(rename|unlink|mktemp)\(|\<creat\([^0-9]' src cmd lib --include='*.[ch]'); do
	case $f in
	src/base/outfile.[ch] | src/program/prototype/prototype_value.c) ;;
	*) wrong "$f makes or renames a file: base/outfile.c does that" ;;
	esac
done

# Programs are started by base/child.c, which gives them no descriptor and no limit of descry's.
for f in $(grep -rlE '\<(popen|system|vfork|posix_spawnp?|fexecve|execv[pe]*|execl[pe]?|execveat)\([^)0-9]|extern char \*\*environ' src cmd lib --include='*.[ch]'); do
	case $f in
	src/base/child.c) ;;
	*) wrong "$f starts a program: base/child.c does that" ;;
	esac
done

# Only load/ knows engines by name.
engines='"(kernel|interp|inproc|split)"'
grep -rnE "(str(n|case)?cmp|memcmp|streq)\([^;]*engine[^;]*$engines" src cmd | grep -v '^src/load/' && wrong "the name of an engine is compared outside load/"
grep -rnE "(str(n|case)?cmp|memcmp|streq)\([^;]*(ops|type)->name, *$engines" src cmd | grep -v '^src/load/' && wrong "the name of an engine is compared outside load/"

find src cmd agent -name '*.c' >"${TMPDIR:-/tmp}/one_place.$$"
while read -r f; do
	head -n 3 "$f" | grep -q '^/\*' || wrong "$f does not say first what it does"
	[ "$(wc -l <"$f")" -le 800 ] || wrong "$f has more than 800 lines"
done <"${TMPDIR:-/tmp}/one_place.$$"
rm -f "${TMPDIR:-/tmp}/one_place.$$"

# A file's name occurs once, so that a name in a message or a debugger finds its file. The languages of program/runtime/ have
# parallel files, which doc/runtimes.md describes.
for f in $(find src cmd agent bpf wire -name '*.[ch]' -not -path 'src/program/runtime/*' | sed 's|.*/||' | sort | uniq -d); do
	wrong "$f is the name of several files: $(find src cmd agent bpf wire -name "$f" -not -path 'src/program/runtime/*' | tr '\n' ' ')"
done

# A private function's name occurs in few files, so that a break point on it stops at few places.
private=$(find src cmd agent -name '*.c' -exec awk '/^static [^=;]*\(/ {
	sub(/__attribute__\(\([^)]*\)\) /, ""); sub(/\(.*/, ""); sub(/.*[ *]/, ""); if (!seen[FILENAME, $0]++) print $0 }' {} + | sort | uniq -c | awk '$1 > 4 { print $2 }')
[ -n "$private" ] && wrong "private functions of the same name in more than four files: $(echo "$private" | tr '\n' ' ')"
exit $fail
