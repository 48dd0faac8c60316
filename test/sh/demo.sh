# tools/demo on a machine that has only Debian's base and what tools/install-deps installs: each question has an answer, for root and for
# an ordinary user.
# serial
[ "$(id -u)" = 0 ] || { echo "needs root: only root sees all answers of the demo"; exit 77; }
dir=$(mktemp -d /var/tmp/descry-demo-test-XXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
cp "$DESCRY" tools/demo "$dir/"
mkdir "$dir/upper" "$dir/work"
mkdir -m 777 "$dir/tmp"

# In a mount namespace, a view of /etc without the files of packages outside the base.
# shellcheck disable=SC2016
as='mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc || exit 77
	rm -f /etc/services /etc/protocols; cd /; TMPDIR=$1/tmp; export TMPDIR; dir=$1; shift; exec "$@" "$dir/demo" "$dir/descry"'
unshare --mount sh -c "$as" sh "$dir" env >"$dir/root" 2>&1
status=$?
[ $status != 77 ] || { echo "an overlay of /etc cannot be mounted here: $(tail -1 "$dir/root")"; exit 77; }
unshare --mount sh -c "$as" sh "$dir" setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all >"$dir/user" 2>&1
python3 - "$dir" $status $? <<'END'
import re
import sys

failed = False
for who, status, least in ("root", sys.argv[2], 11), ("user", sys.argv[3], 5):
    text = open("%s/%s" % (sys.argv[1], who), errors="replace").read()
    questions = re.findall(r"^\d+\. ([^\n]*)\n\$ descry(.*?)(?=^\d+\. |\Z)", text, re.M | re.S)
    for question, rest in questions:
        # The command may go over several lines; its last ends a quote, or has none.
        answer = [line for line in rest.split("\n") if re.search(r"\d", line) and not re.search(r"[{}].*'|'$", line)]
        if not answer or re.search(r"cannot|No such file|error:", rest):
            print("FAILED: %s: %s\n%s" % (who, question, rest[:2000]))
            failed = True
    if status != "0" or len(questions) < least or "%d questions answered" % len(questions) not in text:
        print("FAILED: %s: exit %s, %d questions\n%s" % (who, status, len(questions), text[-1000:]))
        failed = True
sys.exit(failed)
END
