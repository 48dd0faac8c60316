# bash completion for descry: descry complete knows commands, options, values and probes.

# What readline has split at : and = is one word to descry: sets words and cword.
_descry_words()
{
	local i w

	words=() cword=0
	for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
		w=${COMP_WORDS[i]}
		# a colon at the start of a word of its own does not occur in a command line of descry's
		if ((i > 0)) && [[ $w == [:=]* || ${words[-1]} == *[:=] ]]; then
			words[-1]+=$w
		else
			words+=("$w")
		fi
		((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
	done
}

_descry()
{
	local words cword cur lead= line word

	_descry_words
	cur=${words[cword]}
	case $cur in
	[\"\']*) cur=${cur:1} words[cword]=${words[cword]:1} ;;
	*[:=]*) lead=${cur%"${cur##*[:=]}"} ;; # readline replaces what is behind the last of them
	esac
	COMPREPLY=()
	while IFS= read -r line; do
		word=${line%%$'\t'*}
		case $line in
		:file) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur") ;;
		:directory) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$cur") ;;
		:command) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$cur") ;;
		*) COMPREPLY+=("${word#"$lead"}") ;;
		esac
		[[ $word == *: ]] && compopt -o nospace
	done < <("${DESCRY:-${words[0]}}" complete "$cword" "${words[@]}" 2>/dev/null)
}
complete -o filenames -F _descry descry
