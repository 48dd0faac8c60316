#!/usr/bin/env python3
# Arguments of methods of Java, in a JVM that runs: args[1] and so on have the types of the method's signature, a String is its text whatever its
# characters, in both engines and with each collector. A long has one number, `this` is args[0]. Methods that differ have the types on which they agree; a
# class that is loaded later has numbers. Strings that a collector moves all the time are right or a D fault. A method that does not run interpreted is
# a fault. Afterwards, also after SIGKILL, the methods are compiled again. JAVAS: another version's folder.
# serial
# timeout: 600
from java_target import *

TEXTS = ["", "plain", "latin é ü ÿ", "euro €", "漢字", "half \\ud83d", "\\ude00 other half", "😀 two", "long " + "x" * 300, "é" * 200]
PROGRAM = r"""
package com.shop;

import java.io.*;
import java.util.*;

public class Order {
    static volatile int sink;
    static volatile Object kept;
    static final String[] TEXTS = { %s };
    final int base = 3;

    static class Later {
        static int first(int n) { return n + 1; }
        int second(int n) { return first(n) * 2; }
        static int third(String s, int n) { return n; }
    }

    int price(int n, long cents, String name) { return n + (int) (cents >> 3) + name.length(); }
    static int half(long n, int m) { return (int) n / 2 + m; }
    int kinds(byte b, short s, char c, boolean z, float f, double d, int[] a, Object o, String[] t, long l, String last) { return b; }
    int same(String s, int n) { return n; }
    int same(String s, String t) { return s.length(); }
    static int text(String s, int n) { return n; }
    static int old(int n, String s) { return n; }

    static int priced(int n) {
        Order o = new Order();
        int s = 0;
        for (int i = 0; i < n; i++)
            s += o.price(i, -1L - i, "order " + i) + half(i, -i);
        return s;
    }
    static int later(int n) {
        Later l = new Later();
        int s = 0;
        for (int i = 0; i < n; i++)
            s += l.second(i) + Later.third("later", i);
        return s;
    }
    static int all() {
        Order o = new Order();
        int s = o.kinds((byte) -3, (short) -300, '\u20ac', true, 1.5f, -2.25, new int[2], "o", null, 1L << 40, "last") + o.same("one", 7) + o.same("two", "three");
        for (int i = 0; i < TEXTS.length; i++)
            s += text(TEXTS[i], i);
        return s + text(null, -1);
    }
    /* old strings among garbage, so that each collection moves some */
    static int move() {
        String[] kept = new String[4000];
        Order.kept = kept;
        int s = 0;
        for (int i = 0; i < kept.length; i++) {
            kept[i] = "old " + i;
            Order.kept = new Object[] { kept, new byte[2000] };
        }
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < kept.length; i++) {
                s += old(i, kept[i]);
                Order.kept = new Object[] { kept, new byte[3000] };
            }
            for (int i = round; i < kept.length; i += 7)
                kept[i] = "old " + i;
        }
        return s;
    }
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int i = 0; i < 200; i++)
            sink += priced(1000);
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("later"))
                sink += later(20000);
            else if (line.equals("priced"))
                sink += priced(20000);
            else if (line.equals("move"))
                sink += move();
            else
                sink += all();
            System.out.println("done");
        }
    }
}
""" % ", ".join('"%s"' % t for t in TEXTS)
CALLS = 20000
ZGC = "-XX:+UseZGC"
COLLECTORS = ("-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC", ZGC, "-XX:+UseShenandoahGC", "-XX:-UseCompressedOops",
              "-XX:-UseCompressedClassPointers", "-XX:HeapBaseMinAddress=64g")


def has_java(option):
    r = sh("%s/bin/java %s -Xmx128m -version" % (HOME, option))
    return r.returncode == 0 and not r.stdout


def numbers(option, engine):
    name = "arguments, %s, %s" % (option, engine)
    more = '''BEGIN { printf("on"); }
        java$target:com.shop.Order:price:entry { @n = sum(args[1]); @c = sum(args[2]); @p = count(); }
        java$target:com.shop.Order:price:entry /args[3] == strjoin("order ", lltostr(args[1]))/ { @s = count(); }
        java$target:com.shop.Order:*alf:entry { @h = sum(args[1]); @m = sum(args[2]); }
        java$target:com.shop.Order*:seco*:entry { @l = sum(args[1]); }
        java$target:com.shop.Order*:third:entry { @t = sum(args[2]); } ERROR { @e = count(); }'''
    with Java(option) as java:
        check(becomes(lambda: java.do("priced") and compiled(java, "price")), name, "it is compiled before")
        for killed in (True, False):
            s = tracing("--json", "-x", "engine=" + engine, "-p", java.pid, "-n", more)
            check(not compiled(java, "price"), name, "it is interpreted")
            for what in ("priced", "later", "priced"):
                java.do(what)
            if killed:
                s[1].kill()
                finish(s)
            else:
                r = end(s)
                total = sum(range(CALLS))
                check(r.rc == 0 and not r.aggs("e") and "drop" not in r.err, name, r)
                check(r.aggs("p") == {(): CALLS * 2} and r.aggs("n") == {(): total * 2} and r.aggs("c") == {(): (-CALLS - total) * 2}, name, r)
                check(r.aggs("s") == {(): CALLS * 2}, name, "texts", r)
                check(r.aggs("h") == {(): total * 2} and r.aggs("m") == {(): -total * 2}, name, "a static method", r)
                check(r.aggs("l") == {(): total} and r.aggs("t") == {(): total}, name, "a class that is loaded later", r)
            check(becomes(lambda: java.do("priced") and compiled(java, "price")), name, "it is compiled again")


def expected(text, size=257):
    """The text that Java has, as UTF-8 of at most size - 1 bytes."""
    raw = re.sub(r"\\u([0-9a-f]{4})", "\ufffd", text).encode()
    while len(raw) >= size:
        raw = raw.decode()[:-1].encode()
    return raw.decode()


def kinds(option, engine):
    name = "kinds, %s, %s" % (option, engine)
    with Java(option) as java:
        s = tracing("-q", "-x", "engine=" + engine, "-p", java.pid, "-n", r'''
            java$target:com.shop.Order:kinds:entry { printf("<%d %d %x %d %x %x %d %d %d %d %s>\n", args[1], args[2], args[3], args[4], args[5], args[6],
                args[7] != 0, args[8] != 0, args[9], args[10], args[11]); }
            java$target:com.shop.Order:kinds:entry /args[0] != 0/ { printf("<this>\n"); }
            java$target:com.shop.Order:same:entry { printf("<same %s>\n", args[1]); }
            java$target:com.shop.Order:same:entry /args[2] == 7/ { printf("<seven>\n"); }
            java$target:com.shop.Order:text:entry { printf("<%d %s>\n", args[2], args[1]); }
            java$target:com.shop.Order:text:entry { @[args[1]] = count(); }
            java$target:com.shop.Order:text:entry /!args[2]/ { args[3]; }
            java$target:com.shop.Order:half:entry { args[0]; }
            ERROR { printf("<error>\n"); }''')
        java.do("all")
        r = end(s)
        check(r.rc == 0, name, r)
        check("<-3 -300 20ac 1 3fc00000 c002000000000000 1 1 0 1099511627776 last>" in r.out, name, "types", r)
        check("<this>" in r.out and "<same one>" in r.out and "<same two>" in r.out and r.out.count("<seven>") == 1, name, "overloads", r)
        for i, t in enumerate(TEXTS):
            check("<%d %s>" % (i, expected(t)) in r.out, name, "text", repr(t), expected(t), r)
            check(re.search(r"^ *%s +1$" % re.escape(expected(t)), r.out, re.M), name, "key", repr(t), r)
        check("<-1 null>" in r.out, name, "null", r)
        check(r.out.count("<error>") == 1, name, "an argument that is not there", r)


def moving(option, engine):
    name = "moving, %s, %s" % (option, engine)
    with Java(option) as java:
        s = tracing("--json", "-x", "engine=" + engine, "-p", java.pid, "-n", '''
            java$target:com.shop.Order:old:entry { this->s = args[2]; @n = count(); }
            java$target:com.shop.Order:old:entry /this->s == strjoin("old ", lltostr(args[1]))/ { @good = count(); }
            ERROR { @e[arg4] = count(); }''')
        java.do("move")
        r = end(s)
        good, faults = r.aggs("good").get((), 0), sum(r.aggs("e").values())
        check(r.rc == 0 and good + faults == 80000, name, "each text is right or a fault", good, faults, r)
        check(faults == 0, name, "faults", r)


def listing():
    with Java() as java:
        listed = descry("-l", "-v", "-n", "java$target:com.shop.Order:price:entry", "-p", java.pid)
        check(re.search(r"args\[1\]: int.*args\[2\]: int64_t.*args\[3\]: string", listed.out, re.S), "listing", listed)


def no_arguments(option):
    with Java(option) as java:
        r = descry("-p", java.pid, "-n", "java$target:com.shop.Order:price:entry { args[1]; }", rc=1)
        check("has no typed arguments" in r.err, option, "is refused", r)


HOME = java_compile(PROGRAM, notes=False)
usable = [c for c in COLLECTORS if has_java(c)]
version = sh(HOME + "/bin/java -version").stderr
check(ZGC in usable or '"11.' in version, "ZGC", usable)
knows_z = '"21.' not in version
if ZGC in usable and not knows_z:
    no_arguments(ZGC)
    usable.remove(ZGC)
for number, collector in enumerate(usable):
    kinds(collector, ("inproc", "kernel")[number % 2])
for collector, each in [("-XX:+UseG1GC", "inproc")] + [(ZGC, "kernel")] * knows_z:
    numbers(collector, each)
    moving(collector, each)
    moving(collector, "kernel" if each == "inproc" else "inproc")
listing()
done()
