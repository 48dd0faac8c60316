# descry check --apply and --undo: on a sysctl of the test's own network name space and on its own loop device. Every
# D program that measures a knob compiles.
# serial
[ "$(id -u)" = 0 ] || { echo "only root may change a knob"; exit 77; }
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d)
loop=
finish()
{
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$dir"
}
trap finish EXIT
journal=$dir/sub/tuned
tune() { "$DESCRY" check --journal "$journal" "$@"; }

# An unknown knob, and a value that the kernel refuses, leave nothing in the journal.
tune --apply vm.swapiness=60 2>"$dir/err" && complain "an unknown knob is set"
grep -q 'did you mean vm.swappiness' "$dir/err" || complain "no suggestion: $(cat "$dir/err")"
tune --apply limit.nofile=1 2>"$dir/err" && complain "a limit is set"
grep -q 'cannot be set from here' "$dir/err" || complain "limit: $(cat "$dir/err")"
[ -s "$journal" ] && complain "a journal of nothing: $(cat "$journal")"
[ "$(tune --undo)" = "nothing to undo: $journal does not exist" ] || [ ! -s "$journal" ] || complain "undo of nothing"

if unshare -n true 2>/dev/null; then
	cat >"$dir/in" <<'END'
knob=/proc/sys/net/core/somaxconn
echo 1000 >$knob
tune() { "$DESCRY" check --journal "$journal" "$@"; }
tune --apply net.core.somaxconn=1001 || echo "FAILED: --apply"
[ "$(cat $knob)" = 1001 ] || echo "FAILED: applied: $(cat $knob)"
tune --apply net.core.somaxconn=1002 >/dev/null || echo "FAILED: --apply again"
[ "$(wc -l <"$journal")" = 2 ] || echo "FAILED: journal: $(cat "$journal")"
# A value that the kernel refuses changes nothing and is not in the journal.
tune --apply net.core.somaxconn=-5 2>/dev/null && echo "FAILED: -5 was taken"
[ "$(cat $knob) $(wc -l <"$journal")" = "1002 2" ] || echo "FAILED: after a refusal: $(cat $knob) $(cat "$journal")"
tune --undo || echo "FAILED: --undo"
[ "$(cat $knob)" = 1000 ] || echo "FAILED: undone: $(cat $knob)"
[ ! -e "$journal" ] || echo "FAILED: the journal is still there"
# A later change by another program is kept and reported, and stays in the journal.
tune --apply net.core.somaxconn=1003 >/dev/null
echo 77 >$knob
tune --undo 2>"$journal.err" && echo "FAILED: undo over somebody else's change"
grep -q 'another program has changed it' "$journal.err" || echo "FAILED: said: $(cat "$journal.err")"
[ "$(cat $knob)" = 77 ] || echo "FAILED: overwrote somebody else's change"
[ "$(wc -l <"$journal")" = 1 ] || echo "FAILED: the change was forgotten"
echo 1003 >$knob
tune --undo >/dev/null || echo "FAILED: --undo afterwards"
[ "$(cat $knob)" = 1000 ] || echo "FAILED: undone afterwards: $(cat $knob)"
END
	out=$(journal=$journal DESCRY=$DESCRY unshare -n sh "$dir/in" 2>&1)
	echo "$out"
	case $out in *FAILED*) status=1 ;; esac
else
	echo "no network name space can be made here: sysctls were not tried"
fi

truncate -s 1M "$dir/disk"
if loop=$(losetup -f --show "$dir/disk" 2>/dev/null); then
	knob=/sys/block/${loop#/dev/}/queue/read_ahead_kb
	before=$(cat "$knob")
	tune --apply "block.${loop#/dev/}.read_ahead_kb=256" || complain "read-ahead: --apply"
	[ "$(cat "$knob")" = 256 ] || complain "read-ahead is $(cat "$knob")"
	tune --undo || complain "read-ahead: --undo"
	[ "$(cat "$knob")" = "$before" ] || complain "read-ahead was not put back: $(cat "$knob")"
else
	loop=
	echo "no loop device can be had: read-ahead was not tried"
fi

# Nobody else can lock the journal, also one that an earlier version let all users read. A second command waits for the
# first, and says so.
mkdir -p "$dir/sub"
chmod 755 "$dir" "$dir/sub"
: >"$journal"
chmod 644 "$journal"
python3 - "$DESCRY" "$journal" <<'END' || status=1
import fcntl, subprocess, sys
descry, journal = sys.argv[1:]
with open(journal) as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    second = subprocess.Popen([descry, "check", "--journal", journal, "--undo"], stdout=subprocess.PIPE, text=True)
    first_line = second.stdout.readline()
second.communicate()
if "waiting for another command" not in first_line:
    sys.exit("FAILED: no word of waiting: " + first_line)
END
# (a change that another program has changed again stays in the journal)
printf '%s\tnet.core.somaxconn\t1\t2\n' "$(cat /proc/sys/kernel/random/boot_id)" >"$journal"
chmod 644 "$journal"
tune --undo >/dev/null 2>&1
[ -s "$journal" ] || complain "the journal is gone"
setpriv --reuid=65534 --clear-groups cat "$journal" 2>/dev/null && complain "anybody can open the journal"

# A malformed line is refused before anything is undone.
echo nonsense >"$journal"
tune --undo 2>"$dir/err" && complain "a broken journal is taken"
grep -q 'line 1 is not a change' "$dir/err" || complain "broken journal: $(cat "$dir/err")"
# It may be another file, which keeps its mode.
chmod 644 "$journal"
tune --undo 2>/dev/null
[ "$(stat -c %a "$journal")" = 644 ] || complain "the mode of a file that is no journal was changed"

"$DESCRY" check --tunables --machine --json >"$dir/all.json" || complain "--tunables: exit $?"
python3 - "$dir/all.json" >"$dir/programs" <<'END'
import json, shlex, sys
d = json.load(open(sys.argv[1]))
seen = set()
for row in d["tunables"] + d["machine"]:
    if row["measure"]:
        words = shlex.split(row["measure"])
        if words[:2] == ["descry", "-n"]:
            seen.add(words[2])
print("\n".join(sorted(seen)))
END
[ "$(wc -l <"$dir/programs")" -gt 8 ] || complain "few programs: $(cat "$dir/programs")"
if "$DESCRY" -q -x engine=kernel -n 'BEGIN { exit(0); }' 2>/dev/null; then
	while IFS= read -r program; do
		"$DESCRY" -e -n "$program" >"$dir/out" 2>&1 || complain "does not compile: $program: $(cat "$dir/out")"
	done <"$dir/programs"
fi
exit $status
