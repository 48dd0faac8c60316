#!/bin/sh
# The check of the agent's blob lets the agent pass, and nothing that would not run in a stranger's process.
elf=$BUILD/agent/agent.elf
[ -f "$elf" ] || { echo "$elf is not built"; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

agent/flatten "$elf" "$tmp/blob" || status=1
cmp -s "$tmp/blob" "$BUILD/agent/agent.bin" || { echo "not the blob that was built"; status=1; }

# refused WHY CODE [FLAG...]: a program with the agent's layout, and CODE in it.
refused()
{
	why=$1
	cat >"$tmp/x.c" <<-END
		#include <stdint.h>
		__asm__(".pushsection .head, \\"a\\"\\nagent_head: .quad 0\\n.quad 0\\n.long agent_end - agent_head\\n.long 0\\n.section .fixups, \\"a\\"\\n.quad 0\\n.popsection");
		$2
	END
	shift 2
	if ! "${CC:-cc}" -O2 -ffreestanding -fno-builtin -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables \
		-mno-red-zone "$@" -c -o "$tmp/x.o" "$tmp/x.c"; then
		echo "$why: does not compile"
		status=1
	elif "${CC:-cc}" -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -Wl,-q \
		-Wl,-T,agent/agent.ld -o "$tmp/x.elf" "$tmp/x.o" 2>"$tmp/ld"; then
		if agent/flatten "$tmp/x.elf" "$tmp/x.bin" >"$tmp/out" 2>&1; then
			[ "$why" = sound ] && return
			echo "passed: $why"
			status=1
		elif ! grep -q "^agent: $why" "$tmp/out"; then
			echo "expected '$why': $(cat "$tmp/out")"
			status=1
		fi
	elif ! grep -q "$why" "$tmp/ld"; then
		echo "expected '$why': $(cat "$tmp/ld")"
		status=1
	fi
}
refused sound 'uint64_t agent_thread(uint64_t k) { return k + 1; }'
refused "undefined reference" 'extern int printf(const char *, ...); void agent_thread(void) { printf("x"); }'
refused "the agent has writable data" 'int n; int agent_thread(void) { return ++n; }'
refused "the agent has writable data" 'int n = 5; int agent_thread(void) { return ++n; }'
refused "vector or float registers" 'double agent_thread(double a) { return a * 2; }'
refused "vector or float registers" 'void agent_thread(uint64_t *p) { for (int i = 0; i < 64; i++) p[i] = 0; }' -O3
refused "thread-local storage" 'uint64_t agent_thread(void) { uint64_t v; __asm__("mov %%fs:0, %0" : "=r"(v)); return v; }'
refused "addresses in it" 'extern const char agent_end[]; const void *agent_thread(void) { return agent_end; }'
refused "addresses in it" 'int agent_thread(int i) { return i; } void *const x[] __attribute__((section(".fixups"))) = { agent_thread };'
refused ".* bytes are too many" '__asm__(".text\n.skip 70000"); void agent_thread(void) { }'
exit $status
