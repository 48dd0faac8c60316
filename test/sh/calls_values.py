#!/usr/bin/env python3
# descry calls: values of the whole language of prototypes. Structures behind pointers in structures, lists that lead back, structures
# passed by value in registers and on the stack, wide characters, parameters behind an output parameter, imported types.
from live import *

LIBRARY = r"""
#include <stdio.h>
#include <wchar.h>
struct node { int i; struct node *next; };
struct text { int n; const char *s; const wchar_t *w; };
struct two { double d; long l; };
struct small { char c; short s; };
struct floats { float a, b; };
struct large { long v[5]; };
static volatile int seen; /* code enough that every return can be patched */
void list(struct node *n) { seen = n->i; }
void texts(struct text *t, int k) { seen = k; }
void words(const char **v) { seen = 1; }
struct two by_two(int k, struct two t) { seen = k; t.d += k; t.l -= k; return t; }
struct small by_small(struct small s) { seen = s.s; s.c++; return s; }
struct floats by_floats(struct floats f, float g) { seen = 2; f.a += g; return f; }
struct large by_large(struct large l, int k) { seen = k; l.v[4] = k; return l; }
long many(int a, long b, int c, long d, int e, long f, int g, long h, int i, long j, int k, long l) { seen = k; return l; }
double longs(long double x, double y, int k, long double z) { seen = k; return y; }
int wide(const wchar_t *s, wchar_t c) { seen = 1; return c; }
int filled(char *to, int n, const char *from, int i, const char *s) { int k = snprintf(to, n, "%s", from); seen = n + i + *s; return k; }
int made(int n) { seen = n; return n; }
int last(int n) { seen = n; return n + 1; }
"""
SOURCE = r"""
#include <stdio.h>
#include <wchar.h>
struct node { int i; struct node *next; };
struct text { int n; const char *s; const wchar_t *w; };
struct two { double d; long l; };
struct small { char c; short s; };
struct floats { float a, b; };
struct large { long v[5]; };
void list(struct node *n);
void texts(struct text *t, int k);
void words(const char **v);
struct two by_two(int k, struct two t);
struct small by_small(struct small s);
struct floats by_floats(struct floats f, float g);
struct large by_large(struct large l, int k);
long many(int a, long b, int c, long d, int e, long f, int g, long h, int i, long j, int k, long l);
double longs(long double x, double y, int k, long double z);
int wide(const wchar_t *s, wchar_t c);
int filled(char *to, int n, const char *from, int i, const char *s);
int made(int n);
int main(void)
{
	struct node n[6] = { { 1, 0 }, { 2, &n[0] }, { 3, &n[1] }, { 4, &n[2] }, { 5, &n[3] } };
	struct text t = { 3, "abcdef", L"h\u00e9!" };
	const char *v[] = { "one", "two", NULL };
	char to[16];

	list(&n[3]);
	list(&n[4]);
	n[0].next = &n[1];
	list(&n[1]);
	n[0].next = &n[0];
	list(&n[0]);
	n[0].next = (void *)8;
	list(&n[0]);
	texts(&t, 2);
	words(v);
	by_two(2, (struct two){ 1.5, 7 });
	by_small((struct small){ 'a', -2 });
	by_floats((struct floats){ 0.5f, 2 }, 1);
	by_large((struct large){ { 1, 2, 3, 4, 5 } }, 9);
	many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	longs(1.25L, 2, 3, -4);
	wide(L"\u0424\n", L'\u263b');
	filled(to, 9, "given %d %s", 7, "seven");
	made(2);
	wprintf(L"%ls %s %d\n", L"\u0447\u0442\u043e", "narrow", 5);
	return 0;
}
"""
CONF = """
import "types"
void list(node*);
void texts(struct(int, string[elt1], string(array(wide_char, zero)*))*, int);
void words(array(string, zero)*);
struct(double, long) by_two(int, struct(double d, long l));
struct(char, short) by_small(struct(char, short));
struct(float, float) by_floats(struct(float, float), float);
struct(array(long, 5)) by_large(struct(array(long, 5)), int);
long many(int, long, int, long, int, long, int, long, int, long, int, long);
double longs(ldouble, double, int, ldouble);
int wide(string(array(wide_char, zero)*), string(uint));
int filled(+string, int, format);
many_names made(int);
"""
TYPES = """
typedef wide_char = uint
typedef node = struct
typedef node = struct(int, node*)
typedef many_names = enum(NO, ONE, TWO)
"""
if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
for name, text in (("v.c", LIBRARY), ("t.c", SOURCE), ("v.conf", CONF), ("types.conf", TYPES)):
    with open(name, "w") as f:
        f.write(text)
check(sh("cc -O0 -fno-stack-protector -fPIC -shared -o libv.so v.c && cc -O0 -fno-builtin -o t t.c -L. -lv -Wl,-rpath,%s" % TMP).returncode == 0, "built")
LINES = r"""list({ 4, { 3, { 2, { 1, nil } } } }) = <void>
list({ 5, { 4, { 3, { 2, ... } } } }) = <void>
list({ 2, { 1, recurse^ } }) = <void>
list({ 1, recurse }) = <void>
list({ 1, 0x8 }) = <void>
texts({ 3, "abc", "h\u00e9!" }, 2) = <void>
words([ "one", "two" ]) = <void>
by_two(2, { d=%s, l=7 }) = { %s, 5 }
by_small({ 'a', -2 }) = { 'b', -2 }
by_floats(%s, %s) = %s
by_large({ [ 1, 2, 3, 4... ] }, 9) = { [ 1, 2, 3, 4... ] }
many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) = 12
longs(1.250000, %s, 3, -4.000000) = %s
wide("\u0424\n", '\u263b') = 9787
filled("given %%d", 9, "given %%d %%s", 7, "seven") = 11
made(2) = TWO
wprintf("%%ls %%s %%d\n", "\u0447\u0442\u043e", "narrow", 5) = 13
""".replace("\\u00e9", "\u00e9").replace("\\u0424", "\u0424").replace("\\u263b", "\u263b").replace("\\u0447\\u0442\\u043e", "\u0447\u0442\u043e")
for engine in "inproc", "kernel":
    r = descry("calls", "-X", "engine=" + engine, "-F", "v.conf", "-e", "*@t-__*", "./t", env={"LC_ALL": "C.UTF-8"})
    # the kernel shows no vector registers
    want = LINES % (("1.500000", "3.500000", "{ 0.500000, 2.000000 }", "1.000000", "{ 1.500000, 2.000000 }", "2.000000", "2.000000") if engine == "inproc" else ("", "", "?", "?", "?", "?", "?"))
    want = want.replace("by_two(2, { d=, l=7 }) = { , 5 }", "by_two(2, ?) = ?")
    got = "".join(re.sub(r" +=", " =", line) + "\n" for line in without_objects(r.err).splitlines() if not line.startswith("+++"))
    check(got == want, engine, got, want, r)
done()
