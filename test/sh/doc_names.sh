#!/bin/sh
# The names in the pages of doc/ exist: files and functions of overview.md, options, providers and their probes.
status=0

complain()
{
	echo "$*"
	status=1
}

for page in doc/*.md; do
	for file in $(grep -o '`[a-z_./-]*/[a-zA-Z0-9_.-]*\.[a-z0-9]*`' "$page" | tr -d '`' | sort -u); do
		case $file in /*) continue ;; esac # the machine's
		[ -e "$file" ] || [ -e "src/$file" ] || complain "$page: there is no $file"
	done
	for folder in $(grep -o '`[a-z_./]*/`' "$page" | tr -d '`' | sort -u); do
		[ -d "$folder" ] || [ -d "src/$folder" ] || complain "$page: there is no folder $folder"
	done
done
for link in $(grep -oh '](\([a-zA-Z0-9_./-]*\))' README.md | tr -d ']()' | sort -u); do
	[ -e "$link" ] || complain "README.md: there is no $link"
done
for link in $(grep -oh '](\([a-zA-Z0-9_./-]*\))' doc/*.md | tr -d ']()' | sort -u); do
	[ -e "doc/$link" ] || complain "doc/: there is no $link"
done

# `name()` is defined or declared at the start of a line, or is an action of D.
for name in $(grep -oh '`[a-z_0-9]*()`' doc/overview.md doc/ir.md doc/wire.md doc/engines.md | tr -d '`()' | sort -u); do
	grep -rqE "^[A-Za-z].*\\b$name\\(|\"$name\"" src cmd bpf wire || complain "doc: there is no function $name()"
done

for option in $(sed -n 's/^X([A-Z0-9_]*, *"\([^"]*\)".*/\1/p' src/data/options.def); do
	grep -q "\`$option\`" doc/options.md || complain "doc/options.md: nothing about $option"
done

if [ -x "$DESCRY" ]; then
	for provider in $("$DESCRY" -l | awk 'NR > 1 { print $2 }' | sort -u); do
		grep -q "^## .*\\b$provider\\b" doc/providers.md || complain "doc/providers.md: nothing about $provider"
	done
	for provider in dtrace sched proc io vminfo sysinfo fsinfo ip tcp udp mib lockstat; do
		for probe in $("$DESCRY" -l -P $provider | awk 'NR > 1 { sub(" *\\(unavailable\\)", ""); print $NF }'); do
			grep -q "\`$probe\`" doc/providers.md || complain "doc/providers.md: nothing about $provider:::$probe"
		done
	done
fi
exit $status
