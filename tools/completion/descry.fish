# fish completion for descry: descry complete knows commands, options, values and probes.
function __descry_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l descry $words[1]
	set -q DESCRY; and set descry $DESCRY
	for line in ($descry complete (math (count $words) - 1) $words 2>/dev/null)
		switch $line
			case :file
				__fish_complete_path (commandline -ct)
			case :directory
				__fish_complete_directories (commandline -ct)
			case :command
				__fish_complete_command
			case '*'
				echo $line
		end
	end
end
complete -c descry -f -a '(__descry_complete)'
