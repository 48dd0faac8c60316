# The agent runs with the traced code's direction flag. So each string instruction in it comes behind a cld.
set -u
elf=$BUILD/agent/agent.elf
[ -r "$elf" ] || { echo "no $elf"; exit 1; }
command -v objdump >/dev/null || { echo "no objdump"; exit 77; }
objdump -d --no-show-raw-insn "$elf" >"${TMPDIR:-/tmp}/agent_forward.$$" || exit 1
trap 'rm -f "${TMPDIR:-/tmp}/agent_forward.$$"' EXIT
awk '
	/\t(rep|repz|repnz) |\t(movs|stos|lods|cmps|scas)[bwlq]? / && !/repz ret/ {
		n++
		if (!forward) { print "no cld before: " $0; bad++ }
	}
	/^[0-9a-f]+ </ { forward = 0; }
	/\t[a-z]/ { forward = /\tcld/ }
	END { print n " string instructions"; exit bad > 0 || n < 2 }
' "${TMPDIR:-/tmp}/agent_forward.$$"
