# Each file of golden/err is named by a tag that the sources have and that the expected output shows.
set -u
fail=0
for f in test/golden/err/*.d; do
	tag=$(basename "$f" .d)
	tag=${tag%%.*}
	if ! grep -q "\[$tag\]" "${f%.d}.out"; then
		echo "$f: the output has no [$tag]"
		fail=1
	fi
	if ! grep -rqF "\"$tag\"" src cmd; then
		echo "$f: nothing in the sources says $tag"
		fail=1
	fi
done
exit $fail
