# The scripts of examples/ as commands: doc/examples.md agrees with the heads of the scripts, their manual pages are
# correct mdoc, and each script starts by its own first line.
command -v mandoc >/dev/null || { echo "mandoc is not installed"; exit 77; }
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

tools/example-pages --index examples/*.d >"$dir/examples.md"
cmp -s "$dir/examples.md" doc/examples.md || complain "doc/examples.md is old: tools/example-pages --index examples/*.d >doc/examples.md"
for script in examples/*.d; do
	name=$(basename "$script" .d)
	[ "$(head -n 1 "$script")" = "#!/usr/bin/env -S descry -s" ] || complain "$script: its first line does not start descry"
	tools/example-pages --man "$script" >"$dir/descry-$name.1" || complain "$script: no manual page"
	grep -q "^\.Sh EXAMPLES" "$dir/descry-$name.1" || complain "$script: no output of it: tools/example-output $name"
	out=$(mandoc -Tlint -W warning "$dir/descry-$name.1" 2>&1 | grep -v 'referenced manual not found')
	[ -z "$out" ] || complain "$out"
	mandoc -Tascii "$dir/descry-$name.1" | sed 's/.\x08//g' | grep -q "descry-$name" || complain "$script: its page does not name it"
	# As an installed command: the parser accepts it, with an argument for scripts that need one.
	install -m 755 "$script" "$dir/descry-$name"
	ln -sf "$DESCRY" "$dir/descry"
	PATH=$dir:$PATH "$dir/descry-$name" -d parse -x defaultargs -p $$ >/dev/null 2>"$dir/err" </dev/null || complain "$script: $(cat "$dir/err")"
done
exit $status
