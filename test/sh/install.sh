# make install after a build for another PREFIX, with DESTDIR, make uninstall, make dist, and the version in one place.
# serial
# timeout: 600
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d)
before=$(sed -n 's/^prefix = //p' "$BUILD/meson-private/cmd_line.txt")
restore()
{
	make --no-print-directory BUILD="$BUILD" PREFIX="${before:-/usr/local}" prefix all >/dev/null
	rm -rf "$dir"
}
trap restore EXIT
files() { (cd "$1" 2>/dev/null && find . ! -type d | sort); }
run() { make --no-print-directory BUILD="$BUILD" "$@" >"$dir/log" 2>&1 || complain "make $*: $(tail -5 "$dir/log")"; }

# Before anything is written: the prefix is the requested one.
run prefix PREFIX="$dir/one"
[ "$(sed -n 's/^prefix = //p' "$BUILD/meson-private/cmd_line.txt")" = "$dir/one" ] || { complain "make prefix has no effect"; exit 1; }
run install PREFIX="$dir/one"
[ -x "$dir/one/bin/descry" ] || complain "nothing in $dir/one: $(cat "$dir/log")"
"$dir/one/bin/descry" -q -x engine=interp -n 'BEGIN { exit(0); }' || complain "the installed program does not run"
env -i PATH=/usr/bin:/bin "$dir/one/bin/descry-opensnoop" -e || complain "an installed script does not find its descry"
run install PREFIX="$dir/two"
[ "$(files "$dir/two")" = "$(files "$dir/one")" ] || complain "the second PREFIX holds something else: $(files "$dir/two")"
run install PREFIX=/opt/descry DESTDIR="$dir/dest"
[ "$(files "$dir/dest/opt/descry")" = "$(files "$dir/one")" ] || complain "DESTDIR holds something else"
for page in descry.1 descry-check.1 descry-d.7 descry.3 descry.h libdescry.a descry.pc; do
	files "$dir/one" | grep -q "/$page$" || complain "$page is not installed"
done

# Other files in the folder stay.
touch "$dir/two/bin/other"
run uninstall PREFIX="$dir/two"
[ "$(files "$dir/two")" = ./bin/other ] || complain "left after uninstall: $(files "$dir/two")"
[ -x "$dir/one/bin/descry" ] || complain "uninstall removed another installation"
run uninstall PREFIX=/opt/descry DESTDIR="$dir/dest"
[ -z "$(files "$dir/dest")" ] || complain "left after uninstall with DESTDIR: $(files "$dir/dest")"

version=$("$DESCRY" -V | sed 's/.*: descry \([^,]*\),.*/\1/')
grep -q "^	version: '$version'," meson.build || complain "descry -V says $version, which is not meson.build's version"
[ "$(sed -n 's/^## //p' CHANGELOG.md | head -1)" = "$version" ] || complain "CHANGELOG.md does not begin with $version"
if git rev-parse HEAD >/dev/null 2>&1; then
	run dist
	tar -tzf "$BUILD/descry-$version.tar.gz" >"$dir/list" || complain "make dist: no such archive"
	[ "$(sed 's,/.*,,' "$dir/list" | sort -u)" = "descry-$version" ] || complain "make dist: not one directory"
	git ls-tree -r --name-only HEAD | sort >"$dir/want"
	sed -n "s,^descry-$version/\(.*[^/]\)$,\1,p" "$dir/list" | sort | cmp -s - "$dir/want" || complain "make dist: other files than HEAD's"
fi
exit $status
