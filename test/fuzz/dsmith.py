#!/usr/bin/env python3
"""dsmith: random D programs that know what they print.

A program is made of typed nodes. Each node can write itself as D and work out its own value, by the rules of "Numbers" in
doc/dialect.md (ranks, 64 bits until a value is kept; sides left to right, the value before the place it is assigned to, but
a op= b takes a first), so a program comes with its expected output and faults. It is run by the reference interpreter and by the kernel, and
what they print must be that. Aggregations are printed in END, their lines compared as a set.

A failing program is made smaller: clauses, statements and subexpressions are dropped as long as it fails in the same way.

	dsmith --seed 1 --count 1000            seeds 1..1000, both engines
	dsmith --seed 7 --print                 the program and what it must print
	dsmith --seed 7 --size 60 --engines interp
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

M64 = (1 << 64) - 1


class Fault(Exception):
    """The clause ends here."""


class Invalid(Exception):
    """Not a program D takes, or one whose value is not defined: only while making one smaller."""


# --- integer types ---

class Int:
    def __init__(self, bits, signed, names, boolean=False):
        self.bits, self.signed, self.names, self.boolean = bits, signed, names, boolean

    def wrap(self, v):
        if self.boolean:
            return int(v != 0)
        v &= (1 << self.bits) - 1
        return v - (1 << self.bits) if self.signed and v >> (self.bits - 1) else v

    def __repr__(self):
        return self.names[0]


I8 = Int(8, True, ["char", "int8_t", "signed char"])
U8 = Int(8, False, ["unsigned char", "uint8_t", "uchar_t"])
I16 = Int(16, True, ["short", "int16_t"])
U16 = Int(16, False, ["unsigned short", "uint16_t", "ushort_t"])
I32 = Int(32, True, ["int", "int32_t"])
U32 = Int(32, False, ["unsigned int", "uint32_t", "unsigned", "uint_t"])
I64 = Int(64, True, ["long", "int64_t", "long long"])
U64 = Int(64, False, ["unsigned long", "uint64_t", "unsigned long long", "size_t"])
BOOL = Int(8, False, ["_Bool"], boolean=True)
TYPES = [I8, U8, I16, U16, I32, U32, I64, U64]
STR = "string"


def promote(t):
    return I32 if t.bits < 32 else t


def common(a, b):
    """The type two operands are converted to: C's."""
    a, b = promote(a), promote(b)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if not a.signed else b


def higher(a, b):
    """The type of what they make: the higher rank's, which of two small ones is not C's."""
    if max(a.bits, b.bits) < 32 and not a.boolean and not b.boolean:
        return max(a, b, key=lambda t: (t.bits, not t.signed))
    return common(a, b)


def register(t, v):
    """v as operations of type t see it: 64 bits, but of a 32-bit unsigned its 32. What is smaller than the register, and
    signed or smaller than int, is cut when it is kept, by Int.wrap()."""
    return (t if t in (U32, U64) else I64).wrap(v)


# --- nodes ---

ASSIGN, TERNARY, UNARY, POSTFIX, PRIMARY = 1, 2, 14, 15, 16
PREC = {"||": 3, "^^": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, "<=": 10, ">": 10, ">=": 10,
        "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13}
COMPARE = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
           ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
LOGIC = ("&&", "||", "^^")


class Node:
    """kids: subexpressions. type(): an Int, or STR. value(state). text(). const(): its value if the compiler folds it."""
    prec = PRIMARY
    kids = ()
    extra = False  # in parentheses that are not needed

    def d(self, least=0):
        s = self.text()
        return "(%s)" % s if self.prec < least or self.extra else s

    def const(self):
        return None

    def check(self):
        for k in self.kids:
            k.check()


class Lit(Node):
    """An integer literal, typed by its value and suffix."""

    def __init__(self, v, spelling="%d", suffix=""):
        self.v, self.spelling, self.suffix = v, spelling, suffix

    def type(self):
        v, u, l = self.v, "U" in self.suffix, "L" in self.suffix
        any_sign = u or self.spelling != "%d"
        if not l and not u and v < 1 << 31:
            return I32
        if not l and any_sign and v < 1 << 32:
            return U32
        return I64 if not u and v < 1 << 63 else U64

    def value(self, st):
        return self.v

    def const(self):
        return self.v

    def text(self):
        return self.spelling % self.v + self.suffix


class Char(Node):
    def __init__(self, c):
        self.c = c

    def type(self):
        return I32

    def value(self, st):
        return ord(self.c)

    const = lambda self: ord(self.c)

    def text(self):
        return "'%s'" % self.c


class Named(Node):
    """An enumerator or an inline constant."""

    def __init__(self, name, v, t):
        self.name, self.v, self.t = name, v, t

    def type(self):
        return self.t

    def value(self, st):
        return self.v

    def const(self):
        return self.v

    def text(self):
        return self.name


class Sizeof(Node):
    def __init__(self, name, v):
        self.name, self.v = name, v

    def type(self):
        return U64

    def value(self, st):
        return self.v

    def const(self):
        return self.v

    def text(self):
        return "sizeof (%s)" % self.name


class SizeofValue(Node):
    """sizeof (an expression), which is not calculated: it shows the type."""

    def __init__(self, e):
        self.e, self.v = e, e.rtype().bits // 8

    def type(self):
        return U64

    def value(self, st):
        return self.v

    def const(self):
        return self.v

    def text(self):
        return "sizeof (%s)" % self.e.d()


class Inline(Node):
    """An inline with parameters or with variables inside: its text is elsewhere."""

    def __init__(self, name, body, t):
        self.name, self.kids, self.t = name, [body], t

    def type(self):
        return self.t

    def value(self, st):
        return self.t.wrap(self.kids[0].value(st))

    def const(self):
        v = self.kids[0].const()
        return None if v is None else self.t.wrap(v)

    def text(self):
        return self.name


class Unary(Node):
    prec = UNARY

    def __init__(self, op, a):
        self.op, self.kids = op, [a]

    def type(self):
        return I32 if self.op == "!" else promote(self.kids[0].rtype())

    def calc(self, a):
        if self.op == "!":
            return int(not a)
        return register(self.type(), {"-": -a, "~": ~a, "+": a}[self.op])

    def value(self, st):
        return self.calc(self.kids[0].value(st))

    def const(self):
        a = self.kids[0].const()
        return None if a is None else self.calc(a)

    def text(self):
        a = self.kids[0].d(UNARY)
        return self.op + (" " if a[0] in "+-" else "") + a


def rtype(self):
    return self.type()


Node.rtype = rtype  # the type a value has as an operand; a bit-field's is not its declared one


class Binary(Node):
    def __init__(self, op, a, b):
        self.op, self.kids, self.prec = op, [a, b], PREC[op]

    def type(self):
        if self.op in COMPARE or self.op in LOGIC:
            return I32
        if self.op in ("<<", ">>"):
            return promote(self.kids[0].rtype())
        return higher(self.kids[0].rtype(), self.kids[1].rtype())

    def calc(self, a, b):
        return arith(self.op, a, b, self.kids[0].rtype(), self.kids[1].rtype())

    def value(self, st):
        a = self.kids[0].value(st)
        if self.op == "&&":
            return int(bool(a) and bool(self.kids[1].value(st)))
        if self.op == "||":
            return int(bool(a) or bool(self.kids[1].value(st)))
        b = self.kids[1].value(st)
        if self.op == "^^":
            return int(bool(a) != bool(b))
        if isinstance(a, bytes):
            return int(COMPARE[self.op](a, b))
        return self.calc(a, b)

    def const(self):
        a, b = self.kids[0].const(), self.kids[1].const()
        if a is None or b is None:
            return None
        if self.op in LOGIC:
            return {"&&": int(bool(a) and bool(b)), "||": int(bool(a) or bool(b)), "^^": int(bool(a) != bool(b))}[self.op]
        try:
            return self.calc(a, b)
        except Fault:
            raise Invalid("constant division by zero")

    def check(self):
        super().check()
        if (self.kids[0].type() == STR) != (self.kids[1].type() == STR):
            raise Invalid("types")
        if self.kids[0].type() == STR and self.op not in COMPARE:
            raise Invalid("types")
        if self.op in ("/", "%"):
            check_divisor(self.kids[0].rtype(), self.kids[1])
        self.const()

    def text(self):
        # Left-associative. A sign directly after an operator needs its space.
        return "%s %s %s" % (self.kids[0].d(self.prec), self.op, self.kids[1].d(self.prec + 1))


def check_divisor(t, b):
    c = b.const()
    if c is not None and register(common(t, b.rtype()), c) == 0:
        raise Invalid("constant zero")


def arith(op, a, b, ta, tb):
    if op in ("<<", ">>"):
        t, b = promote(ta), b & 63
        return register(t, a << b if op == "<<" else register(t, a) >> b)
    t = common(ta, tb)
    a, b = register(t, a), register(t, b)
    if op in COMPARE:
        return int(COMPARE[op](a, b))
    if op in ("/", "%"):
        if b == 0:
            raise Fault("divide-by-zero")
        q = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            q = -q
        return register(t, q if op == "/" else a - q * b)
    return register(t, {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b,
                        "^": lambda: a ^ b}[op]())


class Ternary(Node):
    prec = TERNARY

    def __init__(self, c, a, b):
        self.kids = [c, a, b]

    def type(self):
        c = self.kids[0].const()
        if c is not None:  # the other operand is as if it were not there
            return self.kids[1 if c else 2].rtype()
        a, b = self.kids[1].rtype(), self.kids[2].rtype()
        return STR if a == STR else common(a, b)

    def value(self, st):
        v = self.kids[1 if self.kids[0].value(st) else 2].value(st)
        return v if isinstance(v, bytes) else register(self.type(), v)

    def const(self):
        c = self.kids[0].const()
        if c is None or self.type() == STR:
            return None
        return self.kids[1 if c else 2].const()

    def check(self):
        super().check()
        if (self.kids[1].type() == STR) != (self.kids[2].type() == STR):
            raise Invalid("types")
        if self.kids[0].type() == STR:
            raise Invalid("types")

    def text(self):
        c, a, b = self.kids
        return "%s ? %s : %s" % (c.d(TERNARY + 1), a.d(TERNARY), b.d(TERNARY))


class Cast(Node):
    prec = UNARY

    def __init__(self, t, a, name):
        self.t, self.kids, self.name = t, [a], name

    def type(self):
        return self.t

    def value(self, st):
        return self.t.wrap(self.kids[0].value(st))

    def const(self):
        a = self.kids[0].const()
        return None if a is None else self.t.wrap(a)

    def text(self):
        return "(%s)%s" % (self.name, self.kids[0].d(UNARY))


class Comma(Node):
    prec = 0

    def __init__(self, a, b):
        self.kids = [a, b]

    def type(self):
        return self.kids[1].type()

    def value(self, st):
        self.kids[0].value(st)
        return self.kids[1].value(st)

    def d(self, least=0):
        return "(%s)" % self.text()

    def text(self):
        return "%s, %s" % (self.kids[0].d(ASSIGN), self.kids[1].d(ASSIGN))


# --- places ---

class Place(Node):
    """kids: indexes and keys. where(state): the key of State.mem. bits: of a bit-field, else 0."""
    bits = 0
    prec = POSTFIX

    def type(self):
        return self.t

    def rtype(self):
        if not self.bits or self.bits > 32:
            return self.t
        return I32 if self.bits < 32 or self.t.signed else U32

    def where(self, st):
        raise NotImplementedError

    def value(self, st):
        return st.load(self.where(st), self.t, self.defined)

    defined = False  # must have been assigned to

    def kept(self, v):
        """What stays of v in this place."""
        if self.t == STR:
            return bytes(v)
        if self.bits:
            return Int(self.bits, self.t.signed, ["field"]).wrap(v)
        return self.t.wrap(v)


class Var(Place):
    prec = PRIMARY

    def __init__(self, var):
        self.var, self.t = var, var.t
        self.defined = var.scope == "this->"

    def where(self, st):
        return (self.var.name,)

    def text(self):
        return self.var.name


class Element(Place):
    def __init__(self, var, index):
        self.var, self.t, self.kids = var, var.t, [index]
        self.defined = var.scope == "this->"

    def where(self, st):
        i = self.kids[0].value(st)
        if not 0 <= i < self.var.n:
            raise Fault("index out of bounds")
        return (self.var.name, i)

    def check(self):
        super().check()
        if self.kids[0].type() == STR:
            raise Invalid("types")
        c = self.kids[0].const()
        if c is not None and not 0 <= c < self.var.n:
            raise Invalid("constant index")

    def text(self):
        return "%s[%s]" % (self.var.name, self.kids[0].d())


class Assoc(Place):
    def __init__(self, var, keys):
        self.var, self.t, self.kids = var, var.t, keys

    def where(self, st):
        return (self.var.name,) + tuple(read(v.value(st)) if k == STR else k.wrap(v.value(st))
                                        for v, k in zip(self.kids, self.var.keys))

    def check(self):
        super().check()
        for v, k in zip(self.kids, self.var.keys):
            if (v.type() == STR) != (k == STR):
                raise Invalid("types")

    def text(self):
        return "%s[%s]" % (self.var.name, ", ".join(k.d(ASSIGN) for k in self.kids))


class Member(Place):
    """base.field, base: a Place of struct type or a pointer (arrow); index: of an array member."""

    def __init__(self, base, arrow, field, index=None):
        self.base, self.arrow, self.field, self.t, self.bits = base, arrow, field, field.t, field.bits
        self.defined = base.defined
        self.index = index
        self.fields()

    def fields(self):
        self.kids = list(self.base.kids) + ([self.index] if self.index else [])

    def where(self, st):
        self.base.kids = self.kids[:len(self.base.kids)]
        w = self.base.where(st) + (self.field.name,)
        if self.index:
            i = self.kids[-1].value(st)
            if not 0 <= i < self.field.n:
                if self.arrow:
                    raise Invalid("pointers are not checked by index")
                raise Fault("index out of bounds")
            w += (i,)
        return w

    def check(self):
        self.base.kids = self.kids[:len(self.base.kids)]
        self.base.check()
        if self.index:
            self.kids[-1].check()
            if self.kids[-1].type() == STR:
                raise Invalid("types")
            c = self.kids[-1].const()
            if c is not None and not 0 <= c < self.field.n:
                raise Invalid("constant index")

    def text(self):
        self.base.kids = self.kids[:len(self.base.kids)]
        return self.base.text() + ("->" if self.arrow else ".") + self.field.name + \
            ("[%s]" % self.kids[-1].d() if self.index else "")


class Assign(Node):
    prec = ASSIGN

    def __init__(self, op, place, b):
        self.op, self.place, self.kids = op, place, [b]

    def type(self):
        return self.place.type()

    def value(self, st):
        p = self.place
        if self.op:
            w = p.where(st)
            old = st.load(w, p.t, p.defined)
            b = arith(self.op, old, self.kids[0].value(st), p.rtype(), self.kids[0].rtype())
        else:
            b = self.kids[0].value(st)
            w = p.where(st)
        b = p.kept(b)
        st.store(w, b)
        return b

    def check(self):
        super().check()
        self.place.check()
        if (self.kids[0].type() == STR) != (self.place.type() == STR):
            raise Invalid("types")
        if self.op in ("/", "%"):
            check_divisor(self.place.rtype(), self.kids[0])

    def text(self):
        return "%s %s= %s" % (self.place.d(UNARY), self.op, self.kids[0].d(ASSIGN))


class Step(Node):
    def __init__(self, place, post, by):
        self.place, self.post, self.by = place, post, by
        self.prec = POSTFIX if post else UNARY

    def type(self):
        return self.place.type()

    def value(self, st):
        w = self.place.where(st)
        old = st.load(w, self.place.t, self.place.defined)
        new = self.place.kept(old + self.by)
        st.store(w, new)
        return old if self.post else new

    def check(self):
        self.place.check()

    def text(self):
        op = "++" if self.by > 0 else "--"
        return self.place.d(UNARY) + op if self.post else op + self.place.d(UNARY)


# --- strings ---

class Text(Node):
    def __init__(self, s):
        self.s = s

    def type(self):
        return STR

    def value(self, st):
        return st.cut(self.s.encode())

    def text(self):
        return '"%s"' % self.s.replace("\\", "\\\\").replace('"', '\\"')


def c_strtoll(s, base):
    m = re.match(rb"[ \t\n]*([+-]?)(0[xX](?=[0-9a-fA-F]))?", s) if base == 16 else re.match(rb"[ \t\n]*([+-]?)", s)
    v, i = 0, m.end()
    while i < len(s):
        c = chr(s[i]).lower()
        digit = "0123456789abcdefghijklmnopqrstuvwxyz".find(c)
        if digit < 0 or digit >= base:
            break
        v, i = v * base + digit, i + 1
    if v >= 1 << 63:
        raise Invalid("strtoll overflow")
    return -v if m.group(1) == b"-" else v


def digits(v, base):
    if base == 10:
        return b"%d" % v
    v &= M64
    out = b""
    while v or not out:
        out = b"%c" % b"0123456789abcdefghijklmnopqrstuvwxyz"[v % base] + out
        v //= base
    if base == 16:
        return b"0x" + out
    return b"0" + out if base == 8 and out != b"0" else out


def dirname(s):
    if not s:
        return b"."
    s = s.rstrip(b"/")
    if not s:
        return b"/"
    if b"/" not in s:
        return b"."
    return s[:s.rindex(b"/")].rstrip(b"/") or b"/"


def basename(s):
    if not s:
        return b"."
    s = s.rstrip(b"/")
    return s[s.rfind(b"/") + 1:] if s else b"/"


def substr(s, i, n=1 << 62):
    n = min(n, State.size)
    if i < 0:
        i += len(s)
        if i < 0 and i + n > 0:
            n, i = n + i, 0
    if i < 0 or i >= len(s):
        return b""
    if n < 0:
        n += len(s) - i
    return s[i:i + n] if n > 0 else b""


def index(s, sub, i=0):
    i = max(i, 0)
    return len(s) if i > len(s) and not sub else s.find(sub, i)


def rindex(s, sub, i=None):
    if i is None or i > len(s):
        i = len(s)
    if i < 0:
        return -1 if sub else 0
    return s[:i + len(sub)].rfind(sub)


class NotFound(bytes):
    """The NULL of strchr() and its like: kept in a variable or compared it is an empty string, read it is a fault."""


def from_found(s, at):
    return s[at:] if at >= 0 else NotFound()


def read(v):
    if isinstance(v, NotFound):
        raise Fault("invalid address")
    return v


# name: result, parameters, function. An I32 parameter is converted, as by a prototype.
CALLS = {
    "strlen": (U64, (STR,), len),
    "index": (I32, (STR, STR), index),
    "index ": (I32, (STR, STR, I64), index),
    "rindex": (I32, (STR, STR), rindex),
    "rindex ": (I32, (STR, STR, I64), rindex),
    "strjoin": (STR, (STR, STR), lambda a, b: a + b),
    "substr": (STR, (STR, I64), substr),
    "substr ": (STR, (STR, I64, I64), substr),
    "strchr": (STR, (STR, "char"), lambda s, c: from_found(s, s.find(bytes([c])))),
    "strrchr": (STR, (STR, "char"), lambda s, c: from_found(s, s.rfind(bytes([c])))),
    "strstr": (STR, (STR, STR), lambda s, t: from_found(s, s.find(t))),
    "basename": (STR, (STR,), basename),
    "dirname": (STR, (STR,), dirname),
    "lltostr": (STR, (I64,), lambda v: digits(v, 10)),
    "lltostr ": (STR, (I64, "base"), digits),
    "toupper": (STR, (STR,), bytes.upper),
    "tolower": (STR, (STR,), bytes.lower),
    "strtoll": (I64, (STR,), lambda s: c_strtoll(s, 10)),
    "strtoll ": (I64, (STR, "base"), c_strtoll),
    "htons": (U16, (U16,), lambda v: int.from_bytes(v.to_bytes(2, "little"), "big")),
    "htonl": (U32, (U32,), lambda v: int.from_bytes(v.to_bytes(4, "little"), "big")),
    "ntohll": (U64, (U64,), lambda v: int.from_bytes(v.to_bytes(8, "little"), "big")),
}
INT_CALLS = [k for k, v in CALLS.items() if v[0] != STR]
STR_CALLS = [k for k, v in CALLS.items() if v[0] == STR]


class Call(Node):
    prec = POSTFIX

    def __init__(self, name, args):
        self.name, self.kids = name, args

    def type(self):
        return CALLS[self.name][0]

    def value(self, st):
        vs = []
        for a, p in zip(self.kids, CALLS[self.name][1]):
            v = read(a.value(st))
            vs.append(p.wrap(v) if isinstance(p, Int) else v)
        r = CALLS[self.name][2](*vs)
        return st.cut(r) if type(r) is bytes else r

    def check(self):
        super().check()
        for a, p in zip(self.kids, CALLS[self.name][1]):
            if (a.type() == STR) != (p == STR) or (p in ("char", "base") and a.const() is None):
                raise Invalid("types")
            if p == "char" and not 0 < a.const() < 128 or p == "base" and not 2 <= a.const() <= 36:
                raise Invalid("constant")

    def text(self):
        return "%s(%s)" % (self.name.strip(), ", ".join(a.d(ASSIGN) for a in self.kids))


# --- statements: text(indent) gives lines, run(state) ---

class Expr:
    def __init__(self, e):
        self.e = e

    def exprs(self):
        return [self.e]

    def run(self, st):
        self.e.value(st)

    def lines(self, tab):
        return [tab + self.e.d() + ";"]


class Pointer:
    """this->p = alloca(); all its members are set, one by one."""

    def __init__(self, var, assigns):
        self.var, self.assigns = var, assigns

    def exprs(self):
        return list(self.assigns)

    def run(self, st):
        for a in self.assigns:
            a.value(st)

    def lines(self, tab):
        return [tab + "%s = (struct %s *)alloca(sizeof (struct %s));" % (self.var.name, self.var.t.name, self.var.t.name)] + \
            [tab + a.d() + ";" for a in self.assigns]


class Printf:
    def __init__(self, convs, args, head):
        self.convs, self.args, self.head = convs, args, head

    def exprs(self):
        return list(self.args)

    def run(self, st):
        out = [self.head]
        for c, a in zip(self.convs, self.args):
            v = read(a.value(st))
            t = a.type()
            if (t == STR) != (c[-1] == "s"):
                raise Invalid("format")
            out.append(" " + formatted(c, v if t == STR else t.wrap(v), t))
        st.out.append("".join(out) + "\n")

    def lines(self, tab):
        fmt = self.head + "".join(" " + c for c in self.convs)
        return [tab + 'printf("%s\\n"%s);' % (fmt, "".join(", " + a.d(ASSIGN) for a in self.args))]


def formatted(conv, v, t):
    flags, width, prec, letter = re.fullmatch(r"%([-0]*)(\d*)(?:\.(\d+))?([a-zA-Z])", conv).groups()
    width = int(width or 0)
    if letter == "s":
        s = v.decode("latin-1")
        s = s[:int(prec)] if prec else s
    elif letter == "c":
        if not 32 < v < 127:
            raise Invalid("unprintable")
        s = chr(v)
    else:
        if letter in "di":
            s = "%d" % v
        else:
            u = v & ((1 << t.bits) - 1)
            s = {"u": "%d", "x": "%x", "X": "%X", "o": "%o"}[letter] % u
        sign, s = (s[0], s[1:]) if s[0] == "-" else ("", s)
        if prec:
            s = s.rjust(int(prec), "0")
        elif "0" in flags and "-" not in flags:
            s = s.rjust(width - len(sign), "0")
        s = sign + s
    return s.ljust(width) if "-" in flags else s.rjust(width)


def run_all(statements, st):
    """What is recorded between two ifs is one record: a fault takes back all of it."""
    mark = len(st.out)
    for s in statements:
        if isinstance(s, If):
            s.run(st)
            mark = len(st.out)
            continue
        try:
            s.run(st)
        except Fault:
            del st.out[mark:]
            raise


class If:
    def __init__(self, cond, then, other, braces=True):
        self.cond, self.then, self.other, self.braces = cond, then, other, braces

    def exprs(self):
        return [self.cond]

    def run(self, st):
        run_all(self.then if self.cond.value(st) else self.other, st)

    def lines(self, tab):
        out = [tab + "if (%s) {" % self.cond.d()]
        for s in self.then:
            out += s.lines(tab + "\t")
        if len(self.other) == 1 and isinstance(self.other[0], If):
            rest = self.other[0].lines(tab)
            return out + [tab + "} else " + rest[0].lstrip("\t")] + rest[1:]
        if self.other:
            out.append(tab + "} else {")
            for s in self.other:
                out += s.lines(tab + "\t")
        return out + [tab + "}"]


class Agg:
    def __init__(self, agg, keys, arg):
        self.agg, self.keys, self.arg = agg, keys, arg

    def exprs(self):
        return list(self.keys) + ([self.arg] if self.arg else [])

    def run(self, st):
        # the value before the keys, as with assignments
        v = I64.wrap(self.arg.value(st)) if self.arg else 0
        key = tuple(read(k.value(st)) if t == STR else t.wrap(k.value(st)) for k, t in zip(self.keys, self.agg.keys))
        if self.agg.func == "avg" and abs(v) >> 40:
            raise Invalid("sum of avg()")
        st.aggs.setdefault(self.agg.name, {}).setdefault(key, []).append(v)

    def lines(self, tab):
        # keys get their type by the first use, so all are cast
        keys = ", ".join(k.d(ASSIGN) if t == STR else "(%s)(%s)" % (t.names[0], k.d()) for k, t in zip(self.keys, self.agg.keys))
        return [tab + "@%s%s = %s(%s);" % (self.agg.name, "[%s]" % keys if keys else "", self.agg.func,
                                         self.arg.d(ASSIGN) if self.arg else "")]


AGG_VALUE = {"count": len, "sum": lambda v: I64.wrap(sum(v)), "min": min, "max": max,
             "avg": lambda v: abs(sum(v)) // len(v) * (1 if sum(v) >= 0 else -1)}


class Clause:
    def __init__(self, probe, pred, body):
        self.probe, self.pred, self.body = probe, pred, body

    def lines(self):
        out = [self.probe]
        if self.pred:
            out.append("/ %s /" % self.pred.d())
        out.append("{")
        for s in self.body:
            out += s.lines("\t")
        return out + ["}"]


# --- programs ---

class State:
    def __init__(self, strsize):
        self.mem, self.out, self.aggs, self.strsize, self.faults = {}, [], {}, strsize, []
        State.size = strsize

    def cut(self, s):
        return s[:self.strsize]

    def load(self, where, t, defined):
        if where not in self.mem:
            if defined:
                raise Invalid("not assigned to yet")
            return b"" if t == STR else 0
        return self.mem[where]

    def store(self, where, v):
        self.mem[where] = v


class Variable:
    """n: elements of an array; keys: of an associative one; t: Int, STR or Struct; pointer to it."""

    def __init__(self, scope, name, t, decl, n=0, keys=(), pointer=False):
        self.scope, self.name, self.t, self.decl, self.n, self.keys, self.pointer = \
            scope, scope + name, t, decl, n, keys, pointer
        self.short = name


class Field:
    def __init__(self, name, t, bits=0, n=0, decl=""):
        self.name, self.t, self.bits, self.n, self.decl = name, t, bits, n, decl


class Struct:
    def __init__(self, name, fields):
        self.name, self.fields = name, fields

    def lines(self):
        return ["struct %s {" % self.name] + \
            ["\t%s %s%s;" % (f.decl, f.name, " : %d" % f.bits if f.bits else "[%d]" % f.n if f.n else "") for f in self.fields] + ["};"]


class Aggregation:
    def __init__(self, name, func, keys):
        self.name, self.func, self.keys = name, func, keys


class Program:
    def __init__(self):
        self.structs, self.vars, self.aggs, self.inlines, self.clauses = [], [], [], [], []
        self.strsize = 256

    def text(self):
        clauses = []
        for c in self.clauses:
            clauses += [""] + c.lines()
        body = "\n".join(clauses)
        words = set(re.findall(r"(?:this->|self->)?\w+", body))
        inlines = []
        for name, line in reversed(self.inlines):
            if name in words:
                inlines.insert(0, line)
                words |= set(re.findall(r"(?:this->|self->)?\w+", line))
        out = ["#pragma D option quiet"]
        if self.strsize != 256:
            out.append("#pragma D option strsize=%d" % self.strsize)
        used = [v for v in self.vars if v.name in words]
        for s in self.structs:
            if any(v.t is s for v in used):
                out += s.lines()
        out.append("enum { ENUM_A, ENUM_B = 7, ENUM_C, ENUM_D = -40 };")
        for v in used:
            if v.decl is None or v.pointer:
                continue
            keys = "[%s]" % ", ".join(k if k == STR else k.names[0] for k in v.keys) if v.keys else \
                "[%d]" % v.n if v.n else ""
            out.append("%s%s %s%s;" % ({"self->": "self ", "this->": "this "}.get(v.scope, ""), v.decl, v.short, keys))
        out += inlines
        aggs = [a for a in self.aggs if "@%s" % a.name in body]
        out.append(body)
        out += ["", "BEGIN", "{", "\texit(0);", "}"]
        if aggs:
            out += ["", "END", "{"]
            for a in aggs:
                out.append('\tprinta("@%s%s %%@d\\n", @%s);' % (a.name, "".join(" [%s]" % ("%s" if k == STR else "%d")
                                                                               for k in a.keys), a.name))
            out.append("}")
        return "\n".join(out) + "\n"

    def nodes(self):
        """Every statement's expressions."""
        def walk(stmts):
            for s in stmts:
                yield from s.exprs()
                if isinstance(s, If):
                    yield from walk(s.then)
                    yield from walk(s.other)
        for c in self.clauses:
            if c.pred:
                yield c.pred
            yield from walk(c.body)

    def expect(self):
        """(lines, aggregation lines, faults)."""
        for e in self.nodes():
            e.check()
        st = State(self.strsize)
        lines = []
        for probe in ("BEGIN", "END"):
            for w in [w for w in st.mem if w[0].startswith("this->")]:
                del st.mem[w]
            for c in self.clauses:
                if c.probe != probe:
                    continue
                st.out = []
                try:
                    if c.pred is None or c.pred.value(st):
                        run_all(c.body, st)
                except Fault as f:
                    st.faults.append(str(f))
                lines += st.out
        aggs = []
        for a in self.aggs:
            for key, vs in st.aggs.get(a.name, {}).items():
                aggs.append("@%s%s %d\n" % (a.name, "".join(" [%s]" % (k.decode("latin-1") if t == STR else k)
                                                          for k, t in zip(key, a.keys)), AGG_VALUE[a.func](vs)))
        return "".join(lines), sorted(aggs), st.faults


# --- making programs ---

WORDS = ["", "a", "b", "ab", "abc", "foo", "foobar", "/usr/lib/x", "usr/", "//", "/", ".", "a/b//c/", "x y", "0x1f", "42", "-17", "zz9",
         "sixteen bytes ok", "the quick brown fox jumps over the lazy dog", "Hello, World", "aaaaaaab", "aaab", "12345678",
         "1234567", "123456789abcdef", "\\", 'say "hi"', "~!@#$^&*()", "barfoobar",
         "0123456789012345678901234567890123456789012345678901234567890123456789"]
EDGES = [0, 1, 2, 3, 7, 8, 10, 15, 16, 31, 32, 63, 64, 100, 127, 128, 129, 200, 255, 256, 257, 1000, 32767, 32768, 65535, 65536,
         0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x100000000, 0x123456789abcdef, 0x7fffffffffffffff, 0x8000000000000000,
         0xfffffffffffffffe, 0xffffffffffffffff]


class Maker:
    def __init__(self, seed, size=None):
        self.r = random.Random(seed)
        r = self.r
        self.p = Program()
        self.size = size or r.choice([1, 2, 4, 8, 8, 12, 16, 24, 32, 45, 60])
        self.deep = r.choice([1, 2, 2, 3, 3, 4, 5, 7])
        self.strings = r.choice([0, 0.1, 0.3, 0.6])
        self.faulty = r.random() < 0.15
        if r.random() < 0.1:
            self.p.strsize = r.choice([16, 24, 64, 128, 512])
        self.effect = None   # the variable this statement may change inside its expressions: read nowhere else in it
        self.pointers = []
        self.lines = 0
        self.make_variables()

    def coin(self, p):
        return self.r.random() < p

    def name(self, t):
        return self.r.choice(t.names)

    def make_struct(self, i):
        r, fields = self.r, []
        for k in range(r.randint(2, 7)):
            t = r.choice(TYPES)
            bits = r.randint(1, t.bits) if self.coin(0.35) else 0
            n = r.randint(2, 4) if not bits and self.coin(0.15) else 0
            if not bits and self.coin(0.05):
                t = BOOL
            fields.append(Field("m%d" % k, t, bits, n, self.name(t)))
        return Struct("s%d" % i, fields)

    def make_variables(self):
        r, p = self.r, self.p
        p.structs = [self.make_struct(i) for i in range(r.randint(0, 2))]
        for i in range(r.randint(2, 9)):
            scope = r.choice(["", "", "self->", "this->", "this->"])
            t = BOOL if self.coin(0.04) else r.choice(TYPES)
            p.vars.append(Variable(scope, "v%d" % i, t, self.name(t)))
        for i in range(r.randint(0, 3)):
            scope = r.choice(["", "self->", "this->"])
            t = r.choice(TYPES)
            p.vars.append(Variable(scope, "a%d" % i, t, self.name(t), n=r.choice([2, 3, 4, 8, 17])))
        for i in range(r.randint(0, 3)):
            scope = r.choice(["", "", "self->"])
            t = STR if self.coin(self.strings) else r.choice(TYPES)
            keys = [STR if self.coin(0.4) else r.choice(TYPES) for _ in range(r.randint(1, 3))]
            p.vars.append(Variable(scope, "m%d" % i, t, t if t == STR else self.name(t), keys=keys))
        for i in range(r.randint(1, 4) if self.strings else 0):
            p.vars.append(Variable(r.choice(["", "self->", "this->"]), "t%d" % i, STR, STR))
        for i, s in enumerate(p.structs):
            for k in range(r.randint(1, 2)):
                kind = r.choice(["", "", "self->", "this->", "pointer", "assoc", "array"])
                name = "%s%d%d" % ("q" if kind == "pointer" else "s", i, k)
                if kind == "pointer":
                    p.vars.append(Variable("this->", name, s, "struct " + s.name, pointer=True))
                elif kind == "assoc":
                    p.vars.append(Variable(r.choice(["", "self->"]), name, s, "struct " + s.name,
                                           keys=[STR if self.coin(0.4) else r.choice(TYPES)]))
                elif kind == "array":
                    p.vars.append(Variable(r.choice(["", "this->", "self->"]), name, s, "struct " + s.name, n=r.randint(2, 4)))
                else:
                    p.vars.append(Variable(kind, name, s, "struct " + s.name))
        for i in range(r.randint(0, 4)):
            func = r.choice(["count", "sum", "min", "max", "avg"])
            p.aggs.append(Aggregation("g%d" % i, func, [STR if self.coin(0.4) else r.choice(TYPES) for _ in range(r.randint(0, 3))]))

    # -- expressions --

    def word(self):
        return Text(self.r.choice(WORDS)[:self.p.strsize])

    def literal(self):
        r = self.r
        k = r.random()
        if k < 0.05:
            return Char(r.choice("azAZ09+-% "))
        if k < 0.08:
            n, v = r.choice([("ENUM_A", 0), ("ENUM_B", 7), ("ENUM_C", 8), ("ENUM_D", -40)])
            return Named(n, v, I32)
        if k < 0.1:
            t = r.choice(TYPES)
            return Sizeof(self.name(t), t.bits // 8)
        v = r.choice(EDGES) if self.coin(0.5) else r.randint(0, 20) if self.coin(0.6) else r.getrandbits(r.choice([8, 16, 32, 33, 63, 64]))
        if v >= 1 << 63:
            spelling, suffix = r.choice(["%d", "0x%x"]), r.choice(["U", "UL", "ULL"])
        else:
            spelling, suffix = r.choice(["%d", "%d", "%d", "0x%x", "0%o"]), r.choice(["", "", "", "", "U", "L", "UL", "ULL", "LL"])
            if v == 0:
                spelling = "%d"
        e = Lit(v, spelling, suffix)
        return Unary("-", e) if self.coin(0.25) else e

    def places(self, t=None):
        """Variables whose elements are integers (or strings); not the one being changed."""
        out = []
        for v in self.p.vars:
            if v is self.effect or (v.pointer and v not in self.pointers):
                continue
            out.append(v)
        return out

    def index_of(self, n, depth, safe=False):
        k = self.r.random()
        if k < 0.5 or depth <= 0:
            return Lit(self.r.randrange(n))
        if self.faulty and not safe and self.coin(0.05):
            return self.int(depth - 1)
        e = self.int(depth - 1)
        if n & (n - 1) == 0 and self.coin(0.7):
            return Binary("&", e, Lit(n - 1))
        return Binary("%", Cast(U32, e, "unsigned"), Lit(n))

    def place_of(self, v, depth):
        """A place inside variable v that holds an integer or a string."""
        r = self.r
        safe = v.scope == "this->"
        if v.keys:
            # few keys, so that the same element is met again
            keys = []
            for k in v.keys:
                if k == STR:
                    keys.append(self.string(depth - 2) if self.coin(0.15) and depth > 1 else Text(r.choice(WORDS[:6])))
                else:
                    keys.append(self.int(depth - 2) if self.coin(0.2) and depth > 1 else Lit(r.randint(0, 2)))
            base = Assoc(v, keys)
        elif v.n:
            base = Element(v, self.index_of(v.n, depth))
        else:
            base = Var(v)
        if isinstance(v.t, Struct):
            f = r.choice(v.t.fields)
            ix = self.index_of(f.n, depth, v.pointer) if f.n else None
            return Member(base, v.pointer, f, ix)
        return base

    def read(self, want, depth):
        """A variable's value, integer or string."""
        vs = [v for v in self.places() if (v.t == STR) == (want == STR)]
        if not vs:
            return None
        return self.place_of(self.r.choice(vs), depth)

    def change(self, depth):
        """A side effect on the statement's own variable; it is used once."""
        v, self.effect_left = self.effect, False
        p = self.place_of(v, 0)
        if p.type() == STR:
            return None
        if self.coin(0.5):
            return Step(p, self.coin(0.5), self.r.choice([1, -1]))
        return Assign("", p, self.int(depth - 1))

    def divisor(self, depth):
        if not self.faulty or self.coin(0.7):
            e = self.int(depth)
            if e.const() is not None:
                return e if e.const() else Lit(3)
            return Binary("|", e, Lit(1)) if self.coin(0.7) else Ternary(Binary("==", e, Lit(0)), Lit(5), clone(e)) \
                if not has_effect(e) else Binary("|", e, Lit(1))
        e = self.int(depth)
        return Lit(7) if e.const() == 0 else e

    def shift(self, a, depth):
        w = promote(a.rtype()).bits
        if self.coin(0.5) or depth <= 0:
            return Lit(self.r.randrange(w if self.coin(0.7) else 64 if self.coin(0.8) else 200))
        e = self.int(depth - 1)
        return Binary("&", e, Lit(self.r.choice([w - 1, 7, 15, 63]))) if self.coin(0.8) else e

    def int(self, depth):
        e = self.int_(depth)
        if self.coin(0.04) and not isinstance(e, (Comma,)):
            e.extra = True
        try:
            e.check()
        except Invalid:
            return Lit(self.r.randint(1, 9))
        return e

    def int_(self, depth):
        r = self.r
        k = r.random()
        if depth <= 0 or k < 0.1:
            if self.effect and self.effect_left and self.coin(0.1):
                e = self.change(0)
                if e:
                    return e
            if self.coin(0.65):
                e = self.read(I32, depth)
                if e:
                    return e
            if self.p.inlines and self.coin(0.1):
                return self.inline()
            return self.literal()
        if k < 0.5:
            op = r.choice(["+", "-", "*", "&", "|", "^", "+", "-"])
            a, b = self.int(depth - 1), self.int(depth - 1 if self.coin(0.7) else 0)
            return Binary(op, a, b) if self.coin(0.8) else Binary(op, b, a)
        if k < 0.58:
            a = self.int(depth - 1)
            return Binary(r.choice(["/", "%"]), a, self.divisor(depth - 1))
        if k < 0.66:
            a = self.int(depth - 1)
            return Binary(r.choice(["<<", ">>"]), a, self.shift(a, depth - 1))
        if k < 0.74:
            if self.coin(self.strings):
                return Binary(r.choice(list(COMPARE)), self.string(depth - 2), self.string(depth - 2))
            return Binary(r.choice(list(COMPARE)), self.int(depth - 1), self.int(depth - 1))
        if k < 0.80:
            return Binary(r.choice(LOGIC), self.int(depth - 1), self.int(depth - 1))
        if k < 0.87:
            return Unary(r.choice("-~!+"), self.int(depth - 1))
        if k < 0.92:
            t = BOOL if self.coin(0.05) else r.choice(TYPES)
            return Cast(t, self.int(depth - 1), self.name(t))
        if k < 0.96:
            return Ternary(self.int(depth - 1), self.int(depth - 1), self.int(depth - 1))
        if k < 0.97:
            e = self.int(depth - 1)
            # not of what may be a bit-field
            return SizeofValue(e) if isinstance(e, (Unary, Binary, Cast, Lit)) and not has_effect(e) else e
        if k < 0.98:
            return Comma(self.int(depth - 1), self.int(depth - 1))
        if k < 0.99:
            return self.overflow(depth)
        if self.coin(self.strings):
            return self.call(r.choice(INT_CALLS), depth)
        return self.read(I32, depth) or self.literal()

    def string(self, depth):
        r = self.r
        k = r.random()
        if depth <= 0 or k < 0.3:
            e = self.read(STR, depth) if self.coin(0.6) else None
            return e or self.word()
        if k < 0.4:
            return Ternary(self.int(depth - 1), self.string(depth - 1), self.string(depth - 1))
        return self.call(r.choice(STR_CALLS), depth)

    def call(self, name, depth):
        args = []
        for p in CALLS[name][1]:
            if p == STR:
                args.append(self.string(depth - 1))
            elif p == "char":
                args.append(Char(self.r.choice("abo/ x12")))
            elif p == "base":
                args.append(Lit(self.r.choice([2, 8, 10, 16, 36])))
            elif p is I64 and name[:3] != "llt" and self.coin(0.8):
                n = self.r.randint(-5, 12)
                args.append(Unary("-", Lit(-n)) if n < 0 else Lit(n))
            else:
                args.append(self.int(depth - 1))
        return Call(name, args)

    def inline(self):
        name = self.r.choice(self.p.inlines)[0]
        return clone(self.inline_nodes[name])

    def overflow(self, depth):
        """What is too large for its type, and an operation that shows whether the bits above are still there."""
        r = self.r
        t = r.choice([I8, U8, I16, U16, I32, I32, U32])
        variables = self.coin(0.6)

        def operand(t):
            return Cast(t, (variables and self.read(I32, 0)) or self.literal(), self.name(t))
        e = operand(t)
        for _ in range(r.randint(1, 4)):
            op = r.choice(["*", "*", "*", "+", "-", "<<"])
            e = Binary(op, e, Lit(r.randrange(64)) if op == "<<" else operand(t if self.coin(0.8) else r.choice(TYPES)))
        k = r.random()
        if k < 0.2:
            e = Unary(r.choice("+-~"), e)
        elif k < 0.35:
            e = Comma(self.int(0), e)
        elif k < 0.5:
            e = Ternary(self.int(0), e, self.int(0)) if self.coin(0.5) else Ternary(self.int(0), self.int(0), e)
        k = r.random()
        if k < 0.4:
            return Binary(r.choice(["/", "%"]), e, self.divisor(0))
        if k < 0.6:
            return Binary(">>", e, Lit(r.randrange(64)))
        if k < 0.8:
            return Binary(r.choice(list(COMPARE)), e, self.int(0))
        return Binary(r.choice("+-*"), Cast(I64, e, "long") if self.coin(0.5) else e, Lit(r.randrange(9), "%d", "L"))

    def chain(self):
        """Many values alive at once: a + (b - (c ^ (...)))."""
        e = self.int(1)
        for _ in range(self.r.randint(5, 14)):
            op = self.r.choice(["+", "-", "^", "|", "&", "*"])
            e = Binary(op, self.int(self.r.choice([0, 0, 1])), e)
        return e

    # -- statements --

    def begin_statement(self):
        vs = [v for v in self.p.vars if v.t != STR and not v.pointer and not isinstance(v.t, Struct) or
              isinstance(v.t, Struct) and not v.pointer]
        self.effect = self.r.choice(vs) if vs and self.coin(0.12) else None
        self.effect_left = True

    def full(self):
        if self.coin(0.06):
            return self.chain()
        if self.coin(0.1):
            e = self.overflow(2)
            try:
                e.check()
                return e
            except Invalid:
                pass
        return self.int(self.r.randint(0, self.deep))

    def assign(self):
        r = self.r
        vs = [v for v in self.places()]
        if not vs:
            return Printf([], [], "empty")
        v = r.choice(vs)
        if v.t == STR:
            return Expr(Assign("", self.place_of(v, 2), self.string(min(self.deep, 4))))
        p = self.place_of(v, 2)
        k = r.random()
        if k < 0.15:
            return Expr(Step(p, self.coin(0.5), r.choice([1, -1])))
        if k < 0.45:
            op = r.choice(["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>"])
            if op in "/%":
                e = self.divisor(self.deep - 1)
            elif op in ("<<", ">>"):
                e = self.shift(p, self.deep - 1)
            else:
                e = self.int(self.deep - 1)
            return Expr(Assign(op, p, e))
        if k < 0.52:
            return Expr(Assign("", p, Lit(0)))
        return Expr(Assign("", p, self.full()))

    def conversion(self, e):
        r = self.r
        width = str(r.choice([3, 8, 20])) if self.coin(0.15) else ""
        if e.type() == STR:
            return "%" + ("-" if width and self.coin(0.5) else "") + width + (".%d" % r.randint(1, 9) if self.coin(0.1) else "") + "s"
        flag = r.choice(["-", "0", ""]) if width else ""
        prec = ".%d" % r.randint(1, 12) if self.coin(0.05) and flag != "0" else ""
        return "%" + flag + width + prec + r.choice("ddddduxxXoi")

    def printf(self):
        self.lines += 1
        args = []
        for _ in range(self.r.choice([1, 1, 2, 3, 5, 8])):
            args.append(self.string(min(self.deep, 4)) if self.coin(self.strings) else self.full())
        return Printf([self.conversion(a) for a in args], args, "%d:" % self.lines)

    def aggregate(self):
        a = self.r.choice(self.p.aggs)
        keys = []
        for k in a.keys:
            if k == STR:
                keys.append(Text(self.r.choice(WORDS[:6])) if self.coin(0.6) else self.string(2))
            else:
                keys.append(Lit(self.r.randint(0, 2)) if self.coin(0.6) else self.int(2))
        arg = None
        if a.func == "avg":
            arg = Cast(I32, self.int(2), "int")
        elif a.func != "count":
            arg = self.int(2)
        return Agg(a, keys, arg)

    def statement(self, depth=0):
        self.begin_statement()
        k = self.r.random()
        self.left -= 1
        if k < 0.14 and depth < 4:
            cond = self.int(self.deep)
            self.effect = None
            then = [self.statement(depth + 1) for _ in range(self.r.randint(0, 4))]
            other = [self.statement(depth + 1) for _ in range(self.r.randint(0, 3))] if self.coin(0.5) else []
            return If(cond, then, other)
        if k < 0.24 and self.p.aggs:
            return self.aggregate()
        if k < 0.6:
            return self.assign()
        return self.printf()

    def initial(self):
        """Every this-> place is assigned to before it is read; others sometimes."""
        out = []
        for v in self.p.vars:
            if v.pointer or (v.scope != "this->" and (v.keys or self.coin(0.4))):
                continue
            bases = [Element(v, Lit(i)) for i in range(v.n)] if v.n else [Var(v)] if not v.keys else []
            for b in bases:
                out += [Expr(a) for a in self.fill(b, v.t, False)]
        return out

    def fill(self, base, t, arrow):
        if t == STR:
            return [Assign("", base, self.word())]
        if not isinstance(t, Struct):
            return [Assign("", base, self.literal())]
        out = []
        for f in t.fields:
            for i in range(f.n or 1):
                out.append(Assign("", Member(base, arrow, f, Lit(i) if f.n else None), self.literal()))
        return out

    def make_inlines(self):
        self.inline_nodes = {}
        for i in range(self.r.choice([0, 0, 0, 1, 2])):
            name, t = "INL%d" % i, self.r.choice(TYPES)
            v = self.literal() if self.coin(0.6) else None
            if v is None:
                # made of globals only: an inline is bound where it is used
                vs = [v for v in self.p.vars if not v.scope and not v.keys and not v.n and isinstance(v.t, Int)]
                v = Binary(self.r.choice("+-*&|^"), Var(self.r.choice(vs)), self.literal()) if vs else self.literal()
            t = v.type() if self.coin(0.5) else t
            self.inline_nodes[name] = Inline(name, v, t)
            self.p.inlines.append((name, "inline %s %s = %s;" % (self.name(t), name, v.d())))

    def program(self):
        r, p = self.r, self.p
        self.left = self.size
        p.clauses.append(Clause("BEGIN", None, self.initial()))
        self.make_inlines()
        if p.inlines:
            # an inline over a variable that is being changed: leave those out
            used = " ".join(l for _, l in p.inlines)
            self.inlined = [v for v in p.vars if re.search(r"\b%s\b" % v.short, used)]
        while self.left > 0:
            end = self.coin(0.05) and not any(v.scope == "this->" for v in p.vars)
            self.effect = None
            pred = self.int(self.deep) if self.coin(0.3) else None
            body = []
            self.pointers = [v for v in p.vars if v.pointer] if self.coin(0.5) else []
            for v in self.pointers:
                body.append(Pointer(v, self.fill(Var(v), v.t, True)))
            for _ in range(r.choice([1, 1, 2, 4, 8, 16, 40])):
                if self.left <= 0:
                    break
                body.append(self.statement())
            p.clauses.append(Clause("END" if end else "BEGIN", pred, body))
            self.pointers = []
        # what everything holds in the end
        body = []
        for v in p.vars:
            if v.pointer or v.keys:
                continue
            places = [Element(v, Lit(i)) for i in range(v.n)] if v.n else [Var(v)]
            if isinstance(v.t, Struct):
                places = [Member(b, False, f, Lit(i) if f.n else None) for b in places for f in v.t.fields for i in range(f.n or 1)]
            for i in range(0, len(places), 8):
                body.append(Printf(["%s" if q.type() == STR else "%d" for q in places[i:i + 8]], places[i:i + 8], v.short))
        p.clauses.append(Clause("BEGIN", None, body))
        return p


def has_effect(e):
    return isinstance(e, (Assign, Step)) or any(has_effect(k) for k in e.kids)


def clone(x):
    """A copy of nodes, statements or a program; variables, types and structs are shared."""
    if isinstance(x, list):
        return [clone(i) for i in x]
    if isinstance(x, (Node, Expr, Printf, If, Agg, Pointer, Clause, Program)):
        y = x.__class__.__new__(x.__class__)
        for k, v in x.__dict__.items():
            y.__dict__[k] = clone(v) if k in CLONED else v
        return y
    return x


CLONED = {"kids", "place", "base", "e", "assigns", "args", "convs", "cond", "then", "other", "keys", "arg", "pred", "body", "clauses"}


def generate(seed, size=None):
    """A program whose value is defined: a few seeds need a second attempt."""
    for attempt in range(50):
        try:
            p = Maker("%s/%d" % (seed, attempt), size).program()
            p.expect()
            return p
        except Invalid:
            continue
    raise SystemExit("seed %s: no program" % seed)


# --- running ---

FAULT = re.compile(r"^\S+: error on enabled probe ID \d+ \(ID \d+: dtrace:::\w+\): ([^(]*?)(?: \([^()]*\))? in (?:action|predicate).*")


class Runner:
    def __init__(self, descry, engines, directory):
        self.descry, self.engines, self.directory = descry, engines, directory
        self.file = os.path.join(directory, "p.d")

    def one(self, engine):
        p = subprocess.Popen([self.descry, "-x", "engine=" + engine, "-s", self.file], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            return "timeout", "", err.decode("latin-1")
        return p.returncode, out.decode("latin-1"), err.decode("latin-1")

    def failure(self, program):
        """None, or (kind, details)."""
        want, want_aggs, want_faults = program.expect()
        with open(self.file, "w", encoding="latin-1") as f:
            f.write(program.text())
        for engine in self.engines:
            code, out, err = self.one(engine)
            faults, other = [], []
            for line in err.splitlines():
                m = FAULT.match(line)
                (faults if m else other).append(m.group(1) if m else line)
            text = "".join(other)
            if code != 0 or other:
                kind = "crash" if isinstance(code, int) and (code < 0 or "assert" in text.lower() or "Sanitizer" in text) else \
                    "rejected" if "kernel rejects" in text else "refused" if "too long" in text or "too much stack" in text else \
                    "timeout" if code == "timeout" else "error " + "".join(re.findall(r"D_[A-Z_]+", text)[:1])
                return engine + " " + kind, "exit %s\n%s" % (code, err)
            lines = out.removesuffix("\n").splitlines(True)  # output ends with an empty line
            got, got_aggs = "".join(l for l in lines if l[0] != "@"), sorted(l for l in lines if l[0] == "@")
            # printa() may be of aggregations without a value: they print nothing, or their zero
            if got != want:
                return engine + " wrong", "--- expected\n%s--- printed\n%s%s" % (*differing(want, got), err)
            if got_aggs != want_aggs:
                return engine + " wrong aggregation", "--- expected\n%s--- printed\n%s" % ("".join(want_aggs), "".join(got_aggs))
            if faults != want_faults:
                return engine + " wrong faults", "--- expected\n%s\n--- got\n%s" % ("\n".join(want_faults), err)
        return None


def differing(want, got):
    a, b = want.splitlines(True), got.splitlines(True)
    while a and b and a[0] == b[0]:
        del a[0], b[0]
    while a and b and a[-1] == b[-1]:
        del a[-1], b[-1]
    return "".join(a[:6]), "".join(b[:6])


# --- making failing programs smaller ---

def lists_of(p):
    """Every list of which elements can be dropped."""
    yield p.clauses

    def walk(stmts):
        yield stmts
        for s in stmts:
            if isinstance(s, If):
                yield from walk(s.then)
                yield from walk(s.other)
    for c in p.clauses:
        yield from walk(c.body)


def slots_of(p):
    """(get, set) of every expression."""
    def attr(o, name):
        return (lambda: getattr(o, name)), (lambda v: setattr(o, name, v))

    def item(l, i):
        return (lambda: l[i]), (lambda v: l.__setitem__(i, v))

    def inside(e):
        for i in range(len(e.kids)):
            if not isinstance(e, Inline):
                yield item(e.kids, i)
                yield from inside(e.kids[i])
        if hasattr(e, "place"):
            yield from inside(e.place)

    def walk(stmts):
        for s in stmts:
            tops = [attr(s, "e")] if isinstance(s, Expr) else [attr(s, "cond")] if isinstance(s, If) else \
                [item(s.args, i) for i in range(len(s.args))] if isinstance(s, Printf) else \
                [item(s.keys, i) for i in range(len(s.keys))] + ([attr(s, "arg")] if s.arg else []) if isinstance(s, Agg) else []
            for t in tops:
                yield t
                yield from inside(t[0]())
            if isinstance(s, If):
                yield from walk(s.then)
                yield from walk(s.other)
    for c in p.clauses:
        if c.pred:
            yield attr(c, "pred")
            yield from inside(c.pred)
        yield from walk(c.body)


def minimise(runner, program, kind, seconds=60):
    end = time.time() + seconds

    def still(p):
        if time.time() > end:
            return False
        try:
            f = runner.failure(p)
        except (Invalid, Fault):
            return False
        return f is not None and f[0] == kind

    best = clone(program)
    again = True
    while again and time.time() < end:
        again = False
        # parts of lists, halves first
        count = len(list(lists_of(best)))
        for n in range(count):
            ls = list(lists_of(best))
            if n >= len(ls):
                break
            step = max(1, len(ls[n]) // 2)
            while step:
                i = 0
                while True:
                    trial = clone(best)
                    l = list(lists_of(trial))[n]
                    if i >= len(l):
                        break
                    del l[i:i + step]
                    if still(trial):
                        best, again = trial, True
                    else:
                        i += step
                step //= 2
        # an if by its branch, a printf without an argument
        for c in range(len(list(lists_of(best)))):
            i = 0
            while True:
                ls = list(lists_of(best))
                if c >= len(ls) or i >= len(ls[c]):
                    break
                s = ls[c][i]
                trials = []
                if isinstance(s, If):
                    for branch in ("then", "other"):
                        t = clone(best)
                        l = list(lists_of(t))[c]
                        l[i:i + 1] = getattr(l[i], branch)
                        trials.append(t)
                elif isinstance(s, Printf) and s.args:
                    for k in range(len(s.args)):
                        t = clone(best)
                        q = list(lists_of(t))[c][i]
                        del q.args[k], q.convs[k]
                        trials.append(t)
                elif isinstance(s, Clause) and s.pred:
                    t = clone(best)
                    list(lists_of(t))[c][i].pred = None
                    trials.append(t)
                for t in trials:
                    if still(t):
                        best, again = t, True
                        break
                else:
                    i += 1
        # an expression by one of its own, or by a number
        i = 0
        while True:
            slots = list(slots_of(best))
            if i >= len(slots):
                break
            e = slots[i][0]()
            choices = [("kid", k) for k in range(len(e.kids))] if not isinstance(e, Inline) else []
            if isinstance(e, Place):
                choices = []
            if e.type() == STR:
                choices += [("new", Text(""))] if not isinstance(e, Text) else []
            elif not isinstance(e, Lit):
                choices += [("new", Lit(0)), ("new", Lit(1))]
            for how, what in choices:
                trial = clone(best)
                get, put = list(slots_of(trial))[i]
                put(get().kids[what] if how == "kid" else what)
                if still(trial):
                    best, again = trial, True
                    break
            else:
                i += 1
    return best


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=1)
    a.add_argument("--seconds", type=float, default=0, help="stop after this many")
    a.add_argument("--size", type=int, help="statements")
    a.add_argument("--engines", default="interp,kernel")
    a.add_argument("--descry", default=os.environ.get("DESCRY", "build/cmd/descry"))
    a.add_argument("--print", action="store_true", help="only print the program and what it must print")
    a.add_argument("--keep", help="directory to write failing programs to")
    a.add_argument("--all", action="store_true", help="go on after the first failure of a kind")
    a.add_argument("--no-minimise", action="store_true")
    o = a.parse_args()
    start, done, kinds = time.time(), 0, {}
    # a consumer that died must not take this with it
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="dsmith") as directory:
        runner = Runner(o.descry, o.engines.split(","), directory)
        for seed in range(o.seed, o.seed + o.count):
            if o.seconds and time.time() - start > o.seconds:
                break
            program = generate(seed, o.size)
            if o.print:
                print(program.text(), end="")
                lines, aggs, faults = program.expect()
                print("/*\n%s%s%s*/" % (lines, "".join(aggs), "".join("fault: %s\n" % f for f in faults)))
                continue
            done += 1
            failure = runner.failure(program)
            if not failure:
                continue
            kind = failure[0]
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] > 1 and not o.all:
                print("seed %d: %s" % (seed, kind), flush=True)
                continue
            if not o.no_minimise:
                program = minimise(runner, program, kind)
                failure = runner.failure(program) or failure
            print("=== seed %d: %s\n%s%s" % (seed, kind, program.text(), failure[1]), flush=True)
            if o.keep:
                os.makedirs(o.keep, exist_ok=True)
                with open(os.path.join(o.keep, "seed%d.d" % seed), "w", encoding="latin-1") as f:
                    f.write(program.text())
    if not o.print:
        print("%d programs, %d failed%s, %.1f s" % (done, sum(kinds.values()), "".join(", %s: %d" % k for k in kinds.items()),
                                                   time.time() - start))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
