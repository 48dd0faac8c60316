# serial
# Actions and subroutines that need the kernel, each seen to do what it says.
# covers: breakpoint evaltime pcap pcapsize copyout copyoutstr
set -u
fail=0
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
"$DESCRY" -x engine=kernel -qn 'BEGIN { exit(0); }' >/dev/null 2>&1 || {
	echo "bpf(2) is not permitted"
	exit 77
}

check() {
	want=$1 pattern=$2
	shift 2
	"$@" >"$T/out" 2>&1
	got=$?
	if [ "$got" != "$want" ] || ! grep -qe "$pattern" "$T/out"; then
		echo "$*: exit $got (expected $want), expected a line like: $pattern"
		cat "$T/out"
		fail=1
	fi
}
d() { timeout 60 "$DESCRY" -x engine=kernel "$@"; }
ppid="sh -c 'exec python3 -c \"import os; os.getppid()\"'"
types="$BUILD/test/tracee_types"

# locks and paths of the current thread
check 0 '^0 1 1 0$' d -c "$ppid" -qn 'syscall::getppid:entry /pid == $target/ { this->m = (struct mutex *)&curthread->signal->cred_guard_mutex; printf("%d %d %d %d\n", mutex_owned(this->m), mutex_owner(this->m) == NULL, mutex_type_adaptive(this->m), mutex_type_spin(this->m)); exit(0); }'
check 0 '^0 0 0$' d -c "$ppid" -qn 'syscall::getppid:entry /pid == $target/ { this->l = &curthread->mm->mmap_lock; printf("%d %d %d\n", rw_read_held(this->l), rw_write_held(this->l), rw_iswriter(this->l)); exit(0); }'
check 0 "^$(pwd)\$" d -c "$ppid" -qn 'syscall::getppid:entry /pid == $target/ { printf("%s\n", d_path(&curthread->fs->pwd)); exit(0); }'
# addresses
check 0 'tracee_types`look_at *tracee_types *tracee_types`look_at' d -c "$types" -n 'pid$target:a.out:look_at:entry { ufunc(uregs[R_RIP]); umod(uregs[R_RIP]); uaddr(uregs[R_RIP]); exit(0); }'
check 0 'vmlinux`do_syscall_64 *vmlinux *$' d -c "$ppid" -n 'syscall::getppid:entry /pid == $target/ { func(caller); mod(caller); exit(0); }'
check 0 'tracee_types`main' d -c "$types" -n 'pid$target:a.out:look_at:entry { jstack(4); exit(0); }'
check 0 'tracee_types:0x' d -c "$types" -x noresolve -n 'pid$target:a.out:look_at:entry { ustack(2); exit(0); }'
# where tracing of a command begins
for e in exec preinit postinit main; do
	check 0 look_at d -c "$types" -x evaltime=$e -qn 'pid$target:a.out:construct:entry,pid$target:a.out:look_at:entry { printf("%s ", probefunc); }'
	case $e in
	exec | preinit) want=1 ;;
	*) want=0 ;;
	esac
	if [ "$(grep -c construct "$T/out")" != $want ]; then
		echo "evaltime=$e: construct() seen or not seen:"
		cat "$T/out"
		fail=1
	fi
done
# packets, into a file
cat >"$T/send.py" <<'P'
import socket
s, r = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
r.bind(("127.0.0.1", 0))
for i in range(2):
    s.sendto(b"hello pcap", r.getsockname())
P
d -qw -c "python3 $T/send.py" -n 'BEGIN { freopen("'"$T"'/packets"); } sdt:::net_dev_queue /pid == $target/ { pcap(args[0], PCAP_ETHERNET); }'
python3 - "$T/packets" <<'P' || fail=1
import struct, sys
b = open(sys.argv[1], "rb").read()
head = struct.unpack("<IHHIIII", b[:24])
packets, at = [], 24
while at + 16 <= len(b):
    _, _, kept, length = struct.unpack("<IIII", b[at:at + 16])
    packets.append(b[at + 16:at + 16 + kept])
    at += 16 + kept
if head != (0xa1b23c4d, 2, 4, 0, 0, 2048, 1) or at != len(b) or len(packets) != 2 or not all(
        p.endswith(b"hello pcap") and len(p) == 52 for p in packets):
    print("pcap file:", head, packets, at, len(b))
    sys.exit(1)
P
check 0 'packet of 52 bytes, link type 1' d -q -c "python3 $T/send.py" -n 'sdt:::net_dev_queue /pid == $target/ { pcap(args[0], PCAP_ETHERNET); exit(0); }'
# user memory can be written, or the kernel's refusal is told as such
timeout 60 "$DESCRY" -x engine=kernel -qwc "$types" -n 'BEGIN { done = 0; } pid$target:a.out:look_at:entry /!done/ { done = 1; copyoutstr("written", arg0, 8); } pid$target:a.out:look_at:entry { printf("%s\n", copyinstr(arg0)); }' >"$T/out" 2>&1
if ! grep -q '^written$' "$T/out" && ! grep -q 'not permitted: this kernel does not let programs write user memory' "$T/out"; then
	echo "copyoutstr:"
	cat "$T/out"
	fail=1
fi
# a kernel function is no variable with a type
check 1 'D_SYM_NOTYPES\|D_IDENT_UNDEF' d -x errtags -n 'BEGIN { trace(`_text); }'
exit $fail
