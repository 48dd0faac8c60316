# walltimestamp is the clock of date(1), timestamp advances between firings, and %Y prints local time.
set -u

before=$(date +%s)
wall=$("$DESCRY" -x engine=interp -qn 'BEGIN { printf("%d\n", walltimestamp / 1000000000); exit(0); }' | head -1)
after=$(date +%s)
if [ "$wall" -lt "$before" ] || [ "$wall" -gt "$after" ]; then
	echo "walltimestamp $wall is not between $before and $after"
	exit 1
fi
for zone in UTC America/New_York Asia/Kolkata; do
	ours=$(TZ=$zone "$DESCRY" -x engine=interp -qn 'BEGIN { printf("%Y\n", 1795221976000000000); exit(0); }' | head -1)
	theirs=$(TZ=$zone LC_ALL=C date -d @1795221976 '+%Y %b %e %T')
	if [ "$ours" != "$theirs" ]; then
		echo "%Y in $zone: '$ours', date says '$theirs'"
		exit 1
	fi
done
moved=$("$DESCRY" -x engine=interp -qn 'BEGIN { t = timestamp; } tick-2ms { trace(timestamp - t >= 1000000); exit(0); }' | head -1)
if [ "$moved" != 1 ]; then
	echo "timestamp did not move in 2 ms: $moved"
	exit 1
fi
exit 0
