# Completion offers the words of the option tables and the probes. The test runs bash's script, and those of zsh and
# fish, which pass the words on in the same way, where these shells are installed.
command -v bash >/dev/null || { echo "bash is not installed"; exit 77; }
status=0
complain() { echo "FAILED: $*"; status=1; }
export DESCRY

# offered WORD... CURRENT: prints bash's offers for the last word
offered()
{
	bash -c '. tools/completion/descry.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _descry; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

# Every option of --help is offered, and no other.
for command in list calls profile flame heat serve stack check heal; do
	listed=$("$DESCRY" $command --help | grep -oE '^  (-[a-zA-Z])?(, )?(--[a-z-]+)?' | tr -s ', ' '\n' | grep . | sort)
	all=$(offered descry $command - | sort)
	[ "$listed" ] && [ "$listed" = "$all" ] || complain "$command: --help lists $listed, completion offers $all"
done
listed=$("$DESCRY" help tracing | grep -oE '^  (-[a-zA-Z])?(, )?(--[a-z-]+)?' | tr -s ', ' '\n' | grep . | sort)
[ "$listed" = "$(offered descry - | sort)" ] || complain "descry's own options: $listed, $(offered descry -)"

# Every command and every page of `descry help`.
for command in $("$DESCRY" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	offered descry "" | grep -qx "$command" || complain "nothing about the command $command"
	"$DESCRY" help "$command" | grep -q "descry[- ]$command" || complain "no page about $command"
done
for page in $("$DESCRY" help | sed -n '/^Pages/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
	offered descry help "" | grep -qx "$page" || complain "nothing about the page $page"
	[ "$("$DESCRY" help "$page" | wc -l)" -gt 20 ] || complain "the page $page is short"
done
for name in $(sed -n 's/^X([A-Z0-9_]*, *"\([^"]*\)", OPTION_[^I].*/\1/p' src/data/options.def); do
	offered descry -x "" | grep -qx "$name" || complain "-x: nothing about $name"
done

is() # EXPECTED WORD...
{
	expected=$1
	shift
	[ "$(offered "$@" | tr '\n' ' ')" = "$expected " ] || complain "$*: $(offered "$@" | tr '\n' ' ')instead of $expected"
}
is rank descry heat --colors r
is safe descry flame --colors s
is engine descry -x engin
is "auto kernel interp inproc" descry -x engine = ""
is "kernel" descry -x engine = k
is "syscall:" descry -n sysc
is "syscall:" descry serve -P x -n sysc
is "entry return" descry -n "syscall::getppid:"
is "on-cpu" descry -n "sched:::on"
is "on-cpu" descry -n sched ":::" on
is "sched:::on-cpu" descry -n "'sched:::on"
is "tools/completion/descry.fish" descry -s tools/completion/descry.f
is one-liners descry help one
is "$$" descry -p $$
is "pid\$target:" descry -n 'pid$'
offered descry -p $$ -n 'pid$target:libc.so.6:mallo' | grep -qx 'pid$target:libc.so.6:malloc:\|malloc:' || complain "functions of a process"

if command -v zsh >/dev/null; then
	zsh -n tools/completion/_descry || complain "zsh cannot read its script"
fi
if command -v fish >/dev/null; then
	fish -c 'source tools/completion/descry.fish; complete -C "descry heat --colors r"' | grep -q '^rank' || complain "fish"
fi
exit $status
