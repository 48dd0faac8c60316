#!/bin/sh
# Each `struct NAME` and `enum NAME` of the glossary stands in the sources, and the words are in order.
set -u
fail=0
cd "$(dirname "$0")/../.." || exit 1
for word in $(sed -n 's/.*`\(struct\|enum\) \([a-z_]*\)`.*/\1-\2/p' doc/glossary.md); do
	grep -rqE "^(static )?${word%%-*} ${word#*-} \{" src cmd wire agent || { echo "no ${word%%-*} ${word#*-}"; fail=1; }
done
sed -n 's/^| \([a-z][a-z -]*\) |.*/\1/p' doc/glossary.md | sed 1d >"${TMPDIR:-/tmp}/glossary.$$"
[ "$(wc -l <"${TMPDIR:-/tmp}/glossary.$$")" -gt 50 ] || { echo "words are missing"; fail=1; }
LC_ALL=C sort -c "${TMPDIR:-/tmp}/glossary.$$" || fail=1
rm -f "${TMPDIR:-/tmp}/glossary.$$"
exit $fail
