# serial
# Actions and subroutines that need the kernel: each has its documented effect.
# covers: getf raise stop system ftruncate freopen sym breakpoint evaltime pcap pcapsize copyout copyoutstr
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
echo "nine more" >"$T/nine"
check 0 '^nine 9 1$' d -c "python3 -c 'import os; f = os.open(\"$T/nine\", 0); os.lseek(f, 9, 0); os.fsync(f)'" -qn 'syscall::fsync:entry /pid == $target/ { this->f = getf(arg0); printf("%s %d %d\n", stringof(this->f->f_path.dentry->d_name.name), this->f->f_pos, getf(-1) == NULL && getf(100000) == NULL); exit(0); }'
# addresses
check 0 'tracee_types`look_at *tracee_types *tracee_types`look_at' d -c "$types" -n 'pid$target:a.out:look_at:entry { ufunc(uregs[R_RIP]); umod(uregs[R_RIP]); uaddr(uregs[R_RIP]); exit(0); }'
check 0 'vmlinux`do_syscall_64 *vmlinux *$' d -c "$ppid" -n 'syscall::getppid:entry /pid == $target/ { func(caller); mod(caller); exit(0); }'
check 0 'tracee_types`main' d -c "$types" -n 'pid$target:a.out:look_at:entry { jstack(4); exit(0); }'
check 0 'tracee_types:0x' d -c "$types" -x noresolve -n 'pid$target:a.out:look_at:entry { ustack(2); exit(0); }'
check 0 '^  vmlinux`\([a-z_0-9]*\) *vmlinux *vmlinux`\1 *[1-9]' d -c "$ppid" -qn 'syscall::getppid:entry /pid == $target/ { @[sym(caller), mod(caller), func(caller)] = count(); }'
# one name in several processes is one row
printf 'for i in 1 2 3; do %s; done\n' "$ppid" >"$T/thrice"
check 0 '^ *libc[^ ]* *[0-9]*$' d -c "sh $T/thrice" -qn 'syscall::getppid:entry /progenyof($target)/ { @[umod(uregs[R_RIP])] = count(); }'
[ "$(grep -c libc "$T/out")" = 1 ] || { echo "umod of several processes"; cat "$T/out"; fail=1; }
# also where no function has the address: behind _init
check 0 '^ *python3[^ ]*+0x[0-9a-f]* *[0-9]*$' d -c "sh $T/thrice" -qn 'syscall::getppid:entry /progenyof($target) && execname == "python3"/ { @[usym(curthread->mm->start_code + 64)] = count(); }'
[ "$(grep -c python3 "$T/out")" = 1 ] || { echo "usym of several processes"; cat "$T/out"; fail=1; }
# signals, commands, files
cat >"$T/usr.py" <<'P'
import os, signal
signal.signal(signal.SIGUSR1, lambda *a: print("caught", flush=True))
f = os.open("/dev/null", 1)
try:
    os.fsync(f)
except OSError:
    pass
print("went on", flush=True)
P
check 0 '^caught$' d -wqn 'syscall::fsync:entry /pid == $target/ { raise(SIGUSR1); }' -c "python3 $T/usr.py"
check 0 '^went on$' d -wqn 'syscall::fsync:entry /pid == $target/ { raise(10); }' -c "python3 $T/usr.py"
# nothing is recorded with the signal: the probe's name, as in DTrace
check 0 ' fsync:entry $' d -wn 'syscall::fsync:entry /pid == $target/ { raise(SIGUSR1); }' -c "python3 $T/usr.py"
check 0 ' fsync:entry only once$' d -wn 'syscall::fsync:entry /pid == $target/ { raise(SIGUSR1); printf("only once"); }' -c "python3 $T/usr.py"
check 1 'Destructive actions not allowed' d -qn 'syscall::fsync:entry { raise(10); }'
d -wqn 'syscall::fsync:entry /pid == $target/ { stop(); system("sleep 0.3; grep State: /proc/%d/status; kill -CONT %d", pid, pid); }' -c "python3 $T/usr.py" >"$T/stop" 2>&1
check 0 '^State:.T (stopped)$' cat "$T/stop"
check 0 '^went on$' cat "$T/stop"
check 0 '^a command of descry 5$' d -wqn 'BEGIN { system("echo a command of %s %d", execname, 5); exit(0); }'
d -wqn 'BEGIN { freopen("'"$T"'/re.%d", 7); printf("one\n"); } BEGIN { ftruncate(); printf("two\n"); freopen(""); printf("three\n"); exit(0); }' >"$T/re.out"
check 0 '^two$' cat "$T/re.7"
check 1 '^0$' grep -c one "$T/re.7"
check 0 '^three$' cat "$T/re.out"
d -o "$T/cut" -qn 'tick-50ms { printf("%d\n", ++n); } tick-50ms /n == 3/ { ftruncate(); printf("cut\n"); } tick-50ms /n == 5/ { exit(0); }'
check 0 '^cut 4 5$' sh -c "tr '\n' ' ' <'$T/cut' | sed 's/ *\$//'"
# a program without symbols: the same
strip -o "$T/stripped" "$types"
opens='syscall::openat:entry /pid == $target/ { n++; } pid$target:libc.so.6:usleep:entry { slept++; } END { printf("%d %d %d\n", n > 0, n, slept); }'
check 0 '^1 [1-9][0-9]* 3$' d -c "$T/stripped" -x evaltime=exec -qn "int n, slept; $opens"
check 0 '^0 0 3$' d -c "$T/stripped" -x evaltime=main -qn "int n, slept; $opens"
check 0 '^0 0 3$' d -c "$T/stripped" -x evaltime=postinit -qn "int n, slept; $opens"
# the first and the last of more records than are kept: no drops
d -x bufpolicy=fill -b 8k -n 'syscall:::entry { stack(); }' -c "sh -c 'while :; do read x </proc/version; done'" >"$T/fill" 2>&1
check 0 'vmlinux`' cat "$T/fill"
check 1 '^0$' grep -c drop "$T/fill"
d -q -x bufpolicy=ring -b 8k -n 'tick-4000hz { printf("%d\n", i++); } tick-500ms { exit(0); } END { printf("end %d\n", i); }' >"$T/ring" 2>&1
check 0 '^the last$' sh -c "awk '\$1 == \"end\" && last == \$2 - 1 && NR < 400 && NR > 20 { print \"the last\" } NF { last = \$1 }' '$T/ring'"
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
# user memory can be written, or the kernel's refusal is reported
timeout 60 "$DESCRY" -x engine=kernel -qwc "$types" -n 'BEGIN { done = 0; } pid$target:a.out:look_at:entry /!done/ { done = 1; copyoutstr("written", arg0, 8); } pid$target:a.out:look_at:entry { printf("%s\n", copyinstr(arg0)); }' >"$T/out" 2>&1
if ! grep -q '^written$' "$T/out" && ! grep -q 'not permitted: this kernel does not let programs write user memory' "$T/out"; then
	echo "copyoutstr:"
	cat "$T/out"
	fail=1
fi
# a kernel function is no variable with a type
check 1 'D_SYM_NOTYPES\|D_IDENT_UNDEF' d -x errtags -n 'BEGIN { trace(`_text); }'
exit $fail
