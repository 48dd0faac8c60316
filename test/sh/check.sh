# descry check: each answer is one of three with its reason, and the same as JSON, for root and for an ordinary user.
# serial
status=0
complain() { echo "FAILED: $*"; status=1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"

# judge FILE: checks structure and content of the output of --trials --cost --machine --json
judge()
{
	python3 - "$1" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
bad = []
for subject in ("here", "engines", "providers", "stacks", "names", "costs", "machine"):
    if not d.get(subject):
        bad.append("nothing about " + subject)
for subject in ("engines", "providers", "stacks", "names"):
    for row in d[subject]:
        if row["answer"] not in ("yes", "no", "attached"):
            bad.append("%s %s: answer %s" % (subject, row["name"], row["answer"]))
        if row["answer"] == "no" and not row["because"]:
            bad.append("%s %s: no reason" % (subject, row["name"]))
        if row["answer"] == "yes" and not row["seen"]:
            bad.append("%s %s: nothing seen" % (subject, row["name"]))
answers = {(s, r["name"]): r["answer"] for s in ("engines", "providers") for r in d[s]}
if answers["engines", "interpreter"] != "yes":
    bad.append("the interpreter does not run")
kernel = answers["engines", "kernel"]
for name in ("syscall", "profile", "sched", "proc", "tcp", "udp"):
    if (answers["providers", name] == "no") != (kernel == "no"):
        bad.append("engine kernel: %s, but %s: %s" % (kernel, name, answers["providers", name]))
for row in d["costs"]:
    if row["not_measured"]:
        continue
    if not float(row["ns_alone"]) > 0:
        bad.append("cost %s: %s" % (row["name"], row["ns_alone"]))
    if row["ns_traced"] and not float(row["ratio"]) > 0:
        bad.append("ratio %s: %s" % (row["name"], row["ratio"]))
print("\n".join(bad))
sys.exit(bool(bad))
END
}

"$DESCRY" check --trials --cost --machine --json >"$dir/root.json" || complain "exit $?"
judge "$dir/root.json" || complain "as it runs here"

# The kernel engine's own error is the same as in check.
if "$DESCRY" -q -x engine=kernel -n 'BEGIN { exit(0); }' 2>/dev/null; then want=yes; else want=no; fi
python3 -c "
import json, sys
d = json.load(open('$dir/root.json'))
got = [r['answer'] for r in d['engines'] if r['name'] == 'kernel']
sys.exit(got != ['$want'])" || complain "the kernel engine is not '$want'"

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp "$DESCRY" "$dir/descry"
	chmod 755 "$dir/descry"
	(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/descry" check --trials --cost --machine --json) \
		>"$dir/user.json" || complain "an ordinary user: exit $?"
	judge "$dir/user.json" || complain "an ordinary user"
	grep -q '"name":"kernel","answer":"no","seen":null,"because":"[^"]*CAP_BPF[^"]*","would_be_enabled_by":"root' \
		"$dir/user.json" || complain "an ordinary user is not told what the kernel engine needs"
fi

# No colours in a file. Each option of the help is accepted.
"$DESCRY" check --machine >"$dir/text" || complain "--machine: exit $?"
grep -q "$(printf '\033')" "$dir/text" && complain "escapes in a file"
grep -q '^  HZ  *[0-9]' "$dir/text" || complain "no HZ"

refuse() { # TEXT ARG...: exit status 2 and a message with TEXT
	text=$1
	shift
	"$DESCRY" check "$@" >/dev/null 2>"$dir/err" && complain "$* is accepted"
	grep -q -- "$text" "$dir/err" || complain "$*: $(cat "$dir/err")"
}
refuse 'takes options only' nonsense
refuse 'combined with --journal only' --undo --cost
refuse 'exclude each other' --undo --apply a=b
refuse 'wants NAME=VALUE' --apply vm.swappiness
refuse 'goes with --hardware' --root /mnt
refuse 'wants syscall' --loop nonsense
exit $status
