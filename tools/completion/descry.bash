# bash completion for descry
# descry COMMAND: the options of COMMAND, $1 are its words, and what they take.
_descry_command()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}

	case ${COMP_WORDS[1]}$prev in
	flame--format) mapfile -t COMPREPLY < <(compgen -W "folded perf bpftrace dtrace systemtap chain perf.data pprof speedscope" -- "$cur") ;;
	flame--colors) mapfile -t COMPREPLY < <(compgen -W "kind safe module hot mem io wakeup chain grey" -- "$cur") ;;
	heat--format) mapfile -t COMPREPLY < <(compgen -W "events dtrace json heatmap" -- "$cur") ;;
	heat--colors) mapfile -t COMPREPLY < <(compgen -W "rank linear log" -- "$cur") ;;
	heat--fields) mapfile -t COMPREPLY < <(compgen -W "time,value,series time,value,series,who time,series" -- "$cur") ;;
	heat--unit) mapfile -t COMPREPLY < <(compgen -W "ns us ms s bytes %" -- "$cur") ;;
	heat--time) mapfile -t COMPREPLY < <(compgen -W "ns us ms s" -- "$cur") ;;
	heat-p | flame-p | serve-p) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid= 2>/dev/null)" -- "$cur") ;;
	heat-c | flame-c | serve-c) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	esac
}

_descry()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local providers="dtrace profile syscall sdt rawtp sched proc io vminfo sysinfo pid\$target"
	local flags="-b -c -C -d -D -e -f -F -G -h -H -i -I -l -L -m -n -o -p -P -q -s -S -U -v -V -w -x -X -Z --json --help --version"
	local options="aggpercpu agghist aggpack aggzoom aggrate aggsize aggsortkey aggsortkeypos aggsortpos aggsortrev aggtable
		argref budget bufsize bufpolicy bufresize cpp cpppath cpu defaultargs destructive droptags dynvarsize empty engine
		errtags evaltime fbt flowindent knodefs looplimit maxframes nolibs noresolve nspec pcapsize printsize pspec quiet rawbytes report
		scratchsize specsize srcline stackframes stackindent statusrate strsize switchrate temporal ustackframes zdefs"

	local flame="--svg --html --folded --json --pprof --speedscope --offcpu --wakeup --chain --no-symbols -n -s -p -c -x -o --format --title --subtitle --countname --colors --width --height --minwidth
		--inverted --reverse --diff --normalize --negate --factor --pid --tid --kernel --jit --all --module --addrs
		--event-filter -q --help"
	local serve="--port --bind --history --tick --allow-d --once -n -s -P -m -f -i -c -p -x -D -U -I -L -b -C -Z -w -q --help"
	local heat="--svg --html --json --text --terminal --plain -o --title --subtitle --unit --width --colors --isolate --exclude
		--utilization --full --subsecond --step --from --to --linear --min --max --rows --format --fields --time --factor
		--key --by --agg -t -n -s -P -m -f -i -c -p -x -D -U -I -L -b -C -Z -w -q --help"

	COMPREPLY=()
	if [[ ${COMP_WORDS[1]} == profile && $COMP_CWORD -gt 1 ]]; then
		case $prev in
		-p) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid= 2>/dev/null)" -- "$cur") ;;
		-c) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
		-x) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur"); compopt -o nospace ;;
		--colors) mapfile -t COMPREPLY < <(compgen -W "kind safe module hot mem io wakeup grey" -- "$cur") ;;
		-F | -t | --comm | --min | --title) ;;
		-o) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "-p -c -a -F -t -x -o -q --text --folded --json --svg --html --pprof
			--speedscope --pid --tid --comm --module --addrs --kernel --user --marks --lines --inverted --reverse
			--title --colors --min --help" -- "$cur") ;;
		esac
		return
	fi
	if ((COMP_CWORD > 1)); then
		case ${COMP_WORDS[1]} in
		flame) _descry_command "$flame"; return ;;
		heat) _descry_command "$heat"; return ;;
		serve) _descry_command "$serve"; return ;;
		esac
	elif [[ $cur && $cur != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "check flame heat serve" -- "$cur")
		return
	fi
	if [[ ${COMP_WORDS[1]} == check && $COMP_CWORD -gt 1 ]]; then
		case $prev in
		--compare | --journal) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		--root) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		--loop) mapfile -t COMPREPLY < <(compgen -W "syscall function clock fault switch work idle" -- "$cur") ;;
		--apply) ;;
		*) mapfile -t COMPREPLY < <(compgen -W "--trials --cost --machine --tunables --apply --undo --journal --hardware --compare
			--root --json --loop --help" -- "$cur") ;;
		esac
		return
	fi
	if [[ ${COMP_WORDS[1]} == heal && $COMP_CWORD -gt 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--all --force --timeout --quiet --help $(ps -eo pid= 2>/dev/null)" -- "$cur")
		return
	fi
	# "engine=interp" is three words to bash
	if [[ $prev == = || $cur == = ]]; then
		local name=${COMP_WORDS[COMP_CWORD-1]}
		[[ $prev == = ]] && name=${COMP_WORDS[COMP_CWORD-2]}
		[[ $cur == = ]] && cur=
		[[ $name == engine ]] && mapfile -t COMPREPLY < <(compgen -W "auto kernel interp" -- "$cur")
		return
	fi
	case $prev in
	-x) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur"); compopt -o nospace ;;
	-d) mapfile -t COMPREPLY < <(compgen -W "parse bind ir ebpf jit" -- "$cur") ;;
	-P) mapfile -t COMPREPLY < <(compgen -W "$providers" -- "$cur") ;;
	-n) [[ $cur == *[:\{\ ]* ]] || { mapfile -t COMPREPLY < <(compgen -S : -W "$providers" -- "$cur"); compopt -o nospace; } ;;
	-p) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid= 2>/dev/null)" -- "$cur") ;;
	-c) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	-I | -L) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	-b | -D | -f | -i | -m | -U | -X) ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	esac
}
complete -o filenames -F _descry descry
