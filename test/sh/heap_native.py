#!/usr/bin/env python3
# descry heap on programs in C and C++: the blocks of malloc(3), by the types of DWARF and of C++'s tables, are as many as the program has made;
# references, retained sizes, roots by variables; the same from a core; a stripped program has sizes for classes; leaked blocks are unreachable.
from live import *

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct item { long id; struct item *next; char *text; };
struct shop { struct item *items; long n; struct item **index; double rates[8]; };
struct shop *shop;
static struct item *spare;
static struct item *make(int i, struct item *next)
{
	struct item *it = malloc(sizeof(*it));
	it->id = i; it->next = next; it->text = malloc(1000);
	it->text[0] = 'x'; it->text[1] = 0;
	return it;
}
__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 50; i++)
		((volatile char *)malloc(4321))[0] = 1;
}
/* its registers and its part of the stack are gone when the program waits */
__attribute__((noinline)) static void fill(void)
{
	shop = calloc(1, sizeof(*shop));
	shop->index = malloc(1000 * sizeof(*shop->index));
	for (int i = 0; i < 1000; i++)
		shop->index[i] = shop->items = make(i, shop->items);
	spare = make(7, NULL);
	lose();
}
int main(void)
{
	fill();
	(void)!write(1, "ready\n", 6);
	(void)!read(0, &shop->n, 1);
	return (int)(long)spare->id;
}
"""
CPP = r"""
#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
namespace zoo {
struct Animal { virtual ~Animal() {} long age = 1; };
struct Cat : Animal { long lives = 9; Animal *friend_ = nullptr; };
struct Dog : Animal { std::string name = std::string(500, 'd'); };
}
std::vector<zoo::Animal *> animals;
int main()
{
	for (int i = 0; i < 300; i++) {
		auto *c = new zoo::Cat;
		c->friend_ = new zoo::Dog;
		animals.push_back(c);
	}
	(void)!write(1, "ready\n", 6);
	char c;
	return (int)read(0, &c, 1);
}
"""


def heap(*args, rc=0):
    p = subprocess.run([DESCRY, "heap", "-n", "100000", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check(p.returncode == rc, "exit", p.returncode, p.args, p.stdout[-500:], p.stderr[-800:])
    return p


def rows(*args):
    return [json.loads(line) for line in heap("--json", *args).stdout.splitlines()]


def build(compiler, name, text, *options):
    source, program = os.path.join(TMP, name), os.path.join(TMP, name.split(".")[0])
    with open(source, "w") as f:
        f.write(text)
    subprocess.run([compiler, "-O1", *options, "-o", program, source], check=True)
    return program


def start_program(program):
    p = kill_at_end(subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    check(p.stdout.readline() == "ready\n", program, "did not start")
    return p


def counts(*where):
    return {r["class"]: r["objects"] for r in rows("--histogram", *where) if r["type"] == "class"}


def ask_c(where, name):
    got = counts(*where)
    check(got.get("struct item") == 1001 and got.get("struct shop") == 1, name, "objects by types", got)
    check(sum(n for c, n in got.items() if c.endswith(" bytes)")) >= 1051, name, "blocks without a type", got)
    table = {r["class"]: r for r in rows("--retained", *where) if r["type"] == "class"}
    # 1000 items of 24 bytes with a text of 1000 each, the index of 8000, and the shop itself
    check(1032000 <= table["struct shop"]["retained"] <= 1050000, name, "what the shop retains", table["struct shop"])
    paths = rows("--paths", "struct item", *where)
    check(any(r.get("root") == "variable shop" and r["class"] == "struct shop" for r in paths), name, "the root by its variable", paths[:5])
    check(any(r.get("root") == "variable spare" and r["class"] == "struct item" for r in paths), name, "a static variable", paths[:5])
    item = next(r for r in paths if r.get("root") == "variable spare")["address"]
    refs = rows("--refs", item, *where)
    check([(r["field"], r["class"]) for r in refs if r["type"] == "reference"] == [("+16", "(1000 bytes)")], name, "references", refs)
    lost = {r["class"]: r["objects"] for r in rows("--unreachable", *where) if r["type"] == "class"}
    check(48 <= sum(n for c, n in lost.items() if c.startswith("(43")) <= 50, name, "leaked blocks", lost)
    text = heap(*where).stdout
    check("blocks of malloc(3)" in text and "variable shop" in text and "struct shop" in text, name, "the summary", text)


if not shutil.which("gcc"):
    skip("no gcc")
program = build("gcc", "shop.c", C, "-g")
p = start_program(program)
ask_c(("-p", str(p.pid)), "C")
again = os.path.join(TMP, "x.heapsnapshot")
heap("-p", str(p.pid), "-o", again)
check(counts(again).get("struct item") == 1001, "exported")
if shutil.which("gcore"):
    subprocess.run(["gcore", "-o", os.path.join(TMP, "core"), str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = os.path.join(TMP, "core.%d" % p.pid)
    if os.path.exists(core):
        ask_c((core,), "a core")
        os.unlink(core)
p.kill()
p.wait()
subprocess.run(["strip", program], check=True)
p = start_program(program)
got = counts("-p", str(p.pid))
check("struct item" not in got and got.get("(24 bytes)", 0) >= 1001 and got.get("(1000 bytes)", 0) >= 1001, "stripped", got)
p.kill()
p.wait()
if shutil.which("g++"):
    for options in ("-g",), ("-s",):
        p = start_program(build("g++", "zoo.cc", CPP, *options))
        got = counts("-p", str(p.pid))
        check(got.get("zoo::Cat") == 300 and got.get("zoo::Dog") == 300, options, "classes of C++", got)
        table = {r["class"]: r for r in rows("--retained", "-p", str(p.pid)) if r["type"] == "class"}
        check(300 * 501 <= table["zoo::Dog"]["retained"] <= 300 * 620 and table["zoo::Cat"]["retained"] > table["zoo::Dog"]["retained"], options,
              "retained", table["zoo::Dog"], table["zoo::Cat"])
        p.kill()
        p.wait()
done()
