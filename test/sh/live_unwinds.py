#!/usr/bin/env python3
# Return probes of programs that walk their own stacks: exceptions of C++ and Rust, and V8's frames. A return probe of the kernel's hides
# callers from them, and the program ends. The kernel engine probes where such functions end instead.
# serial
import glob

from live import *

CXX = r"""
#include <cstdio>
#include <stdexcept>
#include <vector>
struct S { int (*a)(int), (*b)(int); };
extern "C" __attribute__((noinline)) int g(int x) { if (x % 3 == 0) throw std::runtime_error("q"); return x * 2; }
__attribute__((noinline)) int h(int x) { return x + 1; }
/* A tail jump of three bytes, which a branch leads to, before the target of another: it has no room for a jump. */
extern "C" int f(S *s, int x, int y);
__asm__(".text; .globl f; .type f,@function; f: .cfi_startproc; mov %rdi,%rax; mov %esi,%edi; test %edx,%edx; js 0f; jne 1f; 0: jmp *8(%rax)\n"
	"1: push %rbx; .cfi_def_cfa_offset 16; .cfi_offset %rbx,-16; mov %edx,%ebx; call g; add %ebx,%eax; nop; pop %rbx; .cfi_restore %rbx; .cfi_def_cfa_offset 8; ret\n"
	".cfi_endproc; .size f,.-f");
/* Through a function of a library. */
__attribute__((noinline)) int at(const std::vector<int> &v, int i) { return v.at(i); }
int main()
{
	S s = { g, h };
	std::vector<int> v(10, 1);
	int n = 0, caught = 0;

	for (int i = 1; i < 20; i++)
		try {
			n += f(&s, i, i & 1);
			n += at(v, i);
		} catch (std::exception &) {
			caught++;
		}
	printf("%d %d\n", n, caught);
}
"""
exe = TMP + "/unwinds"
open(exe + ".cc", "w").write(CXX)
subprocess.run(["g++", "-O2", "-o", exe, exe + ".cc"], check=True)
plain = subprocess.run([exe], stdout=subprocess.PIPE, text=True, check=True).stdout

LEFT = 16  # f is entered 19 times, and left by an exception for 3, 9 and 15


def run(*args, c=exe, **more):
    return descry("-q", *args, c=c, **more)


r = run("-x", "engine=inproc", "-n", "pid$target:a.out:f:return { @ = count(); }", rc=1)
check("the bytes that a jump would displace" in r.err, "f's return has no room for a jump, so that the kernel is asked", r)
for engine in ("auto", "kernel"):
    for pattern in ("f", "[f]"):
        r = run("-x", "engine=" + engine, "-n", "pid$target:a.out:%s:return { @[probefunc] = count(); }" % pattern)
        check(r.rc == 0 and plain in r.out and r.table() == [(("f",), LEFT)], engine, pattern, r)
    r = run("-x", "engine=" + engine, "-n", "pid$target:a.out::return { @[probefunc] = count(); }")
    check(r.rc == 0 and plain in r.out and (("f",), LEFT) in r.table(), engine, "all functions", r)

# the value, the caller and the stack are those of the function's end
D = """pid$target:a.out:g:entry { self->sp = uregs[R_RSP] + 8; self->pc = ucaller; }
       pid$target:a.out:g:return /self->sp == uregs[R_RSP] && self->pc == uregs[R_RIP]/ { @v = sum(arg1); @c[ufunc(ucaller)] = count(); @s[ustack(2)] = count(); }
       pid$target:a.out:main:return { printf("main %d\\n", (int)arg1); }"""
for engine in ("inproc", "kernel"):
    r = run("-x", "engine=" + engine, "-n", D)
    value = sum(2 * i for i in range(1, 20, 2) if i % 3)
    check(r.rc == 0 and plain in r.out and "main 0" in r.out, engine, r)
    check(re.search(r"^ +%d$" % value, r.out, re.M), engine, "the sum of g's results is %d" % value, r)
    check(re.search(r"`f +7$", r.out, re.M), engine, "f is g's caller", r)
    check(re.search(r"^ +\S+`f\+0x[0-9a-f]+\n +\S+`main\+0x[0-9a-f]+\n +7$", r.out, re.M), engine, "g's stack", r)

# f ends by a jump to h, too, whose result is not known there
for engine in ("auto", "kernel"):
    r = descry("-x", "engine=" + engine, "-n", "pid$target:a.out:f:return,pid$target:a.out:g:return { @[probefunc] = sum(arg1); }", c=exe)
    check(re.search(r"descry: f: arg1 is not the result where", r.err), engine, "it is said that f's result is not known", r)
    r = descry("-x", "engine=" + engine, "-n", "pid$target:a.out:f:return { @[probefunc] = count(); }", c=exe)
    check("not the result" not in r.err, engine, "only programs that use arg1 are told", r)

# calls by the PLT: a function of C++ that throws, and one of C that does not
r = run("-x", "engine=kernel", "-n", "plt$target:a.out::return { @[probefunc] = count(); }")
check(r.rc == 0 and plain in r.out and "printf" in r.out, "plt", r)
check("_ZSt24__throw_out_of_range" not in r.out, "a function that throws has no return probe", r)
r = descry("calls", "-X", "engine=kernel", "--", exe)
check(r.rc == 0 and plain in r.out, "calls", r)

# V8's built-in functions, by an executable of Node.js that has their symbols, as npm's have
RETURNS = "pid$target:a.out:Builtins_*LoadIC*:return"


def has_builtins(node):
    return node and finish(start("-l", "-n", RETURNS, c=node + " -v")).rc == 0


nodes = [n for n in [shutil.which("node")] + sorted(glob.glob(BUILD + "/nodes/*/node_modules/node/bin/node")) if has_builtins(n)]
if nodes:
    js = TMP + "/throws.js"
    open(js, "w").write("""let s = 0;
for (let i = 0; i < 1500; i++) {
  try { if (i % 2) throw new Error('x' + i); s++; } catch (e) { s += e.message.length > 100 ? 1 : 0; }
  if (i % 100 == 0) { const a = []; for (let k = 0; k < 1000; k++) a.push({ k }); gc(); }
}
console.log('sum', s);
""")
    r = run("-n", RETURNS + " { @ = count(); }", c="%s --expose-gc %s" % (nodes[0], js))
    check(r.rc == 0 and "sum 750" in r.out, nodes[0], r)
    found = re.findall(r"^ +(\d+)$", r.out, re.M)
    check(found and int(found[-1]) > 0, "returns of V8's builtins are seen", r)
else:
    print("note: no Node.js has symbols")
done()
