# make deb: the package is clean for lintian, installs in a bare Debian, runs there, and is removed without a trace.
# Its dependencies beyond Debian's base are counted, and are less than 10 MB.
# timeout: 1800
[ "$(id -u)" = 0 ] || { echo "only root can install a package in a bare root directory"; exit 77; }
for tool in debootstrap dpkg-buildpackage lintian git; do
	command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
git rev-parse HEAD >/dev/null 2>&1 || { echo "the package is made of a commit, and this tree has none"; exit 77; }
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d /var/tmp/descry-package-XXXXXX)
trap 'rm -rf "$dir"' EXIT
version=$(sed -n "s/^	version: '\([^']*\)'.*/\1/p" meson.build)

make --no-print-directory BUILD="$BUILD" deb >"$dir/log" 2>&1 || { tail -40 "$dir/log"; exit 1; }
package=$(tail -1 "$dir/log")
[ -f "$package" ] || { echo "make deb names no package: $package"; exit 1; }
case $package in
*/descry_"$version"_*.deb) ;;
*) complain "the package is $package, the version $version" ;;
esac
dpkg-deb -c "$package" >"$dir/files"
for file in usr/bin/descry usr/share/man/man1/descry.1.gz usr/share/man/man1/descry-check.1.gz \
	usr/share/bash-completion/completions/descry; do
	grep -q " \./$file$" "$dir/files" || complain "the package lacks $file"
done

for file in usr/include/descry.h usr/lib/x86_64-linux-gnu/libdescry.a usr/share/man/man3/descry.3.gz; do
	grep -q " \./$file$" "$dir/files" && complain "the package has $file, which is libdescry-dev's"
	dpkg-deb -c "$BUILD/libdescry-dev_$version"_*.deb | grep -q " \./$file$" || complain "libdescry-dev lacks $file"
done

# Uses a base that tools/bare-machine has made before, or makes one and removes it again.
base=/var/tmp/descry-bare
[ -e $base/base/.complete ] || base=$dir/bare
cat >"$dir/in" <<'END'
export DEBIAN_FRONTEND=noninteractive
# The base: the packages of debootstrap's minbase, without git and make, which bare-machine adds.
apt-get purge -qq -y git make >/dev/null 2>&1
apt-get autoremove -qq -y --purge >/dev/null 2>&1
apt-get update -qq
dpkg-query -W -f '${Package}\n' | sort >/tmp/before
apt-get install -qq -y --no-install-recommends ../descry_*.deb >/tmp/log 2>&1 || { tail -20 /tmp/log; exit 1; }
dpkg-query -W -f '${Package}\n' | sort | comm -13 /tmp/before - | grep -vx descry >/tmp/new
kb=$(xargs -r dpkg-query -W -f '${Installed-Size}\n' </tmp/new | awk '{ n += $1 } END { print n + 0 }')
echo "pulled in: $(tr '\n' ' ' </tmp/new)"
echo "kilobytes: $kb"
cd /
echo "version: $(descry -V)"
echo "run: $(descry -q -x engine=interp -n 'BEGIN { trace(6 * 7); exit(0); }')"
echo "inside: $(descry -q -x engine=inproc -n 'syscall:::entry { @ = count(); } END { printa("%@d calls", @); }' -c 'ls /etc' | tail -1)"
descry check --hardware --json | head -c 12
echo
apt-get purge -qq -y descry >/dev/null 2>&1 || echo "purge failed"
find / -xdev -name '*descry*' -not -path '/root/*' -not -path '/proc/*' -not -path '/tmp/*' -not -path '/var/cache/*' -not -path '/var/log/*' |
	sed 's/^/left: /'
END
tools/bare-machine --dir "$base" --copy "$package" "$(cat "$dir/in")" >"$dir/out" 2>"$dir/err" || complain "in the bare root: $(tail -20 "$dir/err")"
cat "$dir/out"
said() { sed -n "s/^$1: //p" "$dir/out"; }
[ "$(said kilobytes)" -gt 0 ] && [ "$(said kilobytes)" -lt 10240 ] || complain "the package pulls in $(said kilobytes) kB"
echo "note: the package pulls in $(said kilobytes) kB beyond Debian's base: $(said "pulled in")"
[ "$(said version)" = "descry: descry $version, D 2.0" ] || complain "version: $(said version)"
[ "$(said run | tr -d ' ')" = 42 ] || complain "run: $(said run)"
said inside | grep -qE '[1-9][0-9]* calls' || complain "from inside: $(said inside)"
grep -q '{"hardware":' "$dir/out" || complain "descry check --hardware"
grep -q '^left: \|purge failed' "$dir/out" && complain "the package does not go wholly"
exit $status
