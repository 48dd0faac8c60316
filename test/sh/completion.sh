# Completion offers what `descry flame --help` and `descry heat --help` list, in all three shells; bash is asked.
command -v bash >/dev/null || { echo "bash is not installed"; exit 77; }
status=0
complain() { echo "FAILED: $*"; status=1; }

# offered WORD... CURRENT: what bash offers for the last word
offered()
{
	bash -c '. tools/completion/descry.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _descry; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

for command in flame heat; do
	listed=$("$DESCRY" $command --help | grep -E '^  -' | sed 's/   .*//' | grep -oE -- '--[a-z-]+' | sort -u)
	[ "$(echo "$listed" | wc -l)" -gt 15 ] || complain "$command --help lists too little"
	all=$(offered descry $command -)
	for option in $listed; do
		echo "$all" | grep -qx -- "$option" || complain "bash: nothing about $command $option"
		grep -q -- "'\\*\\?$option[=-]*\\[" tools/completion/_descry || complain "zsh: nothing about $option"
		case $option in
		--json | --help) ;; # of every command
		*) grep -qE "\\\$$command -l ${option#--}( |\$)" tools/completion/descry.fish || complain "fish: nothing about $command $option" ;;
		esac
	done
	for option in $(echo "$all" | grep -- '^--' | grep -vx -- --help); do
		"$DESCRY" $command --help | grep -q -- "$option" || complain "bash: there is no $command $option"
	done
done
[ "$(offered descry he)" = heat ] || complain "commands: $(offered descry he)"
[ "$(offered descry fl)" = flame ] || complain "commands: $(offered descry fl)"
[ "$(offered descry heat --colors r)" = rank ] || complain "--colors"
[ "$(offered descry flame --colors s)" = safe ] || complain "--colors"
offered descry - | grep -qx -- --json || complain "descry's own options"
[ "$(offered descry -x engin)" = engine ] || complain "descry's own values"
exit $status
