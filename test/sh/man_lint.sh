#!/bin/sh
# The manual pages are correct mdoc, and name every option, built-in variable, subroutine and action there is.
status=0

if command -v mandoc >/dev/null; then
	# Which other manuals are installed is the machine's business.
	out=$(mandoc -Tlint -W style man/*.[1-8] 2>/dev/null | grep -v 'referenced manual not found')
	if [ -n "$out" ]; then
		echo "$out"
		status=1
	fi
else
	echo "mandoc is not installed"
	exit 77
fi

# named FILE WORD...: each word stands in the page as text.
named()
{
	page=$1
	shift
	text=$(mandoc -Tascii -O width=500 "$page" | sed 's/.\x08//g')
	for word; do
		case $text in
		*"$word"*) ;;
		*)
			echo "$page: nothing about $word"
			status=1
			;;
		esac
	done
}

# Second field of the X() lines of a .def file whose line matches (or, with -v, does not match) a pattern.
names()
{
	file=$1
	shift
	grep '^X(' "$file" | grep "$@" | sed 's/^X([A-Z0-9_]*, *"\([^"]*\)".*/\1/'
}

# shellcheck disable=SC2046
named man/descry-d.7 $(names src/data/options.def .) $(names src/compile/bind/subrs.def -v SUBR_INTERNAL) \
	$(names src/compile/bind/builtins.def -v '"arg[1-8]"')
options()
{
	grep -oE '^  (-[a-zA-Z])?(, )?(--[a-z-]+)?' | tr -s ', ' '\n' | grep .
}
for option in $("$DESCRY" help tracing | options); do
	named man/descry.1 "$option"
done
for command in $("$DESCRY" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	for option in $("$DESCRY" "$command" --help | options); do
		named "man/descry-$command.1" "$option"
	done
done
exit $status
