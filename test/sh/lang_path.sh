# basename() and dirname() return the same as basename(1) and dirname(1), for paths of all shapes.
set -u
fail=0

for p in / // /// /a /a/ /a//b a a/ a// a/b a/b/ a//b /a/b/c ./a ../a . .. /. /.. /./ a/. a/.. ' ' 'a b/c d' /.a a. ////a////b////; do
	ours=$("$DESCRY" -x engine=interp -qn 'BEGIN { printf("[%s] [%s]\n", basename($$1), dirname($$1)); exit(0); }' "$p" | head -1)
	theirs="[$(basename -- "$p")] [$(dirname -- "$p")]"
	if [ "$ours" != "$theirs" ]; then
		echo "'$p': $ours, the commands say $theirs"
		fail=1
	fi
done
exit $fail
