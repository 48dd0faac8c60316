# fish completion for descry
set -l options aggpercpu agghist aggpack aggzoom aggrate aggsize aggsortkey aggsortkeypos aggsortpos aggsortrev argref \
	bufsize bufresize cpp cpppath cpu defaultargs destructive droptags dynvarsize empty engine errtags flowindent \
	knodefs maxframes nolibs noresolve nspec printsize pspec quiet rawbytes report scratchsize specsize stackframes \
	stackindent statusrate strsize switchrate temporal ustackframes zdefs
complete -c descry -s n -x -d 'D program'
complete -c descry -s s -r -d 'D script'
complete -c descry -s P -x -a 'dtrace profile syscall sdt rawtp sched proc io vminfo' -d 'provider'
complete -c descry -s x -x -a "$options" -d 'option'
complete -c descry -s d -x -a 'parse bind ir ebpf' -d 'print stages'
complete -c descry -s c -x -a '(__fish_complete_command)' -d 'command to trace'
complete -c descry -s p -x -a '(__fish_complete_pids)' -d 'process to trace'
complete -c descry -s o -r -d 'output file'
complete -c descry -s l -d 'list probes'
complete -c descry -s e -d 'compile only'
complete -c descry -s h -d 'make a header of USDT macros'
complete -c descry -s G -d 'make an object of USDT flags'
complete -c descry -s q -d 'quiet'
complete -c descry -s v -d 'verbose'
complete -c descry -s w -d 'allow destructive actions'
complete -c descry -s F -d 'indent by flow'
complete -c descry -s S -d 'print eBPF'
complete -c descry -s V -d 'version'
complete -c descry -s Z -d 'allow no matches'
complete -c descry -l json -d 'JSON output'
complete -c descry -l help -d 'help'
