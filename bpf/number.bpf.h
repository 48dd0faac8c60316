/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts numbers and addresses to text, and back. */

struct digits {
	char *dst;
	u64 size, value, base, pos, n;
};

CALLBACK count_digit(u32 index, struct digits *d)
{
	d->n++;
	d->value /= d->base;
	return !d->value;
}

CALLBACK put_digit(u32 index, struct digits *d)
{
	u64 pos = d->pos - 1, digit = d->value % d->base;

	d->value /= d->base;
	d->pos = pos;
	OPAQUE(pos);
	if (pos < d->size)
		d->dst[pos] = (char)(digit + '0' + (digit > 9 ? 'a' - '0' - 10 : 0));
	return !d->value;
}

/* Writes value in the base: signed in base 10, with a leading 0 in base 8, with a leading 0x in
 * base 16. */
ROUTINE long d_lltostr(char *dst, u64 size, s64 value, u64 base)
{
	bool minus = base == 10 && value < 0;
	u64 abs = minus ? -(u64)value : (u64)value;
	struct digits d = { .dst = dst, .size = size, .value = abs, .base = base, .n = hidden(0) };
	u64 prefix = minus ? 1 : base == 16 ? 2 : base == 8 && value ? 1 : 0;

	dst[0] = 0;
	if (base < 2 || base > 36)
		return 1;
	d.value = hidden(abs);
	bpf_loop(64, count_digit, &d, 0);
	if (minus)
		dst[0] = '-';
	else
		dst[0] = '0';
	dst[1] = 'x';
	d.value = hidden(abs);
	d.pos = hidden(d.n + prefix);
	put_char(dst, size, d.pos, 0);
	bpf_loop(64, put_digit, &d, 0);
	dst[size - 1] = 0;
	return 0;
}

/* --- strtoll --- */

struct number {
	u64 src, base, value;
	u64 state; /* 0 white space, 1 digits */
	u64 first; /* index of the first digit */
	u64 minus;
};

/* Returns the value of the digit c, or 255 when c is no digit. */
INLINE u64 digit_of(u64 c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 255;
}

INLINE u64 char_at(u64 addr)
{
	unsigned char c = 0;

	bpf_probe_read_kernel(&c, 1, KERNEL(addr));
	return c;
}

CALLBACK number_char(u32 index, struct number *n)
{
	u64 i = index, c, digit;

	if (i >= WIRE_STRING_MAX)
		return 1;
	c = char_at(n->src + i);
	if (!n->state) {
		if (c == ' ' || c == '\t')
			return 0;
		n->state = 1;
		n->first = i;
		if (c == '-' || c == '+') {
			n->minus = c == '-';
			n->first = i + 1;
			return 0;
		}
	}
	/* Skips "0x" before a hexadecimal digit. */
	if (n->base == 16 && i == n->first + 1 && (c | 0x20) == 'x' && !n->value &&
	    char_at(n->src + i - 1) == '0' && digit_of(char_at(n->src + i + 1)) < 16)
		return 0;
	digit = digit_of(c);
	if (digit >= n->base)
		return 1;
	n->value = n->value * n->base + digit;
	return 0;
}

ROUTINE s64 d_strtoll(u64 src, u64 base, u64 size)
{
	struct number n = { .src = src,
			    .base = base,
			    .value = hidden(0),
			    .state = hidden(0),
			    .first = hidden(0),
			    .minus = hidden(0) };

	bpf_loop((u32)size - 1, number_char, &n, 0);
	return (s64)(n.minus ? -n.value : n.value);
}

/* --- addresses --- */

struct out {
	char *dst;
	u64 size, pos;
};

INLINE void out_char(struct out *o, char c)
{
	u64 pos = o->pos;

	OPAQUE(pos);
	if (pos < o->size)
		o->dst[pos] = c;
	o->pos = pos + 1;
}

INLINE char hex_digit(u64 v)
{
	return (char)(v + '0' + (v > 9 ? 'a' - '0' - 10 : 0));
}

struct ipv4 {
	struct out out;
	u64 bytes; /* first octet lowest */
};

CALLBACK put_octet(u32 index, struct ipv4 *a)
{
	u64 v = a->bytes & 255;

	a->bytes >>= 8;
	if (index)
		out_char(&a->out, '.');
	if (v >= 100)
		out_char(&a->out, (char)('0' + v / 100));
	if (v >= 10)
		out_char(&a->out, (char)('0' + v / 10 % 10));
	out_char(&a->out, (char)('0' + v % 10));
	return 0;
}

/* Writes the octets at dst + pos, and the NUL. */
INLINE void put_ipv4(char *dst, u64 size, u64 pos, u32 bytes)
{
	struct ipv4 a = { .out = { dst, size, hidden(pos) }, .bytes = bytes };

	bpf_loop(4, put_octet, &a, 0);
	out_char(&a.out, 0);
	dst[size - 1] = 0;
}

ROUTINE long d_inet_ntoa(char *dst, u64 size, u64 addr)
{
	u32 bytes;

	dst[0] = 0;
	if (bpf_probe_read_kernel(&bytes, 4, KERNEL(addr)))
		return E_FAULT;
	put_ipv4(dst, size, 0, bytes);
	return 0;
}

struct ipv6 {
	struct out out;
	u64 high, low;        /* the address, as numbers */
	u64 ngroups;          /* 8, or 6 before a dotted tail */
	u64 run, run_start;   /* zero groups that end here */
	u64 best, best_start; /* the longest run of at least two */
};

INLINE u64 group_of(const struct ipv6 *a, u64 i)
{
	u64 word = i & 4 ? a->low : a->high;

	return word >> (48 - (i & 3) * 16) & 0xffff;
}

CALLBACK find_run(u32 index, struct ipv6 *a)
{
	if (group_of(a, index)) {
		a->run = 0;
		return 0;
	}
	if (!a->run)
		a->run_start = index;
	a->run++;
	if (a->run > 1 && a->run > a->best) {
		a->best = a->run;
		a->best_start = a->run_start;
	}
	return 0;
}

CALLBACK put_group(u32 index, struct ipv6 *a)
{
	u64 i = index, v = group_of(a, i);

	if (a->best && i >= a->best_start && i < a->best_start + a->best) {
		if (i == a->best_start)
			out_char(&a->out, ':');
		if (i == a->ngroups - 1)
			out_char(&a->out, ':');
		return 0;
	}
	if (i)
		out_char(&a->out, ':');
	if (v >= 0x1000)
		out_char(&a->out, hex_digit(v >> 12));
	if (v >= 0x100)
		out_char(&a->out, hex_digit(v >> 8 & 15));
	if (v >= 0x10)
		out_char(&a->out, hex_digit(v >> 4 & 15));
	out_char(&a->out, hex_digit(v & 15));
	return 0;
}

/* How to print an IPv4 address in the last 32 bits: in groups like the rest, in dots, or alone. */
enum ipv4_in_ipv6 { IN_GROUPS, IN_DOTS, ALONE };

/* Writes an address as RFC 5952 says: lower case, the longest run of zero groups as "::". */
INLINE long put_ipv6(char *dst, u64 size, u64 addr, enum ipv4_in_ipv6 how)
{
	struct ipv6 a = { .out = { dst, size, hidden(0) },
			  .ngroups = 8,
			  .run = hidden(0),
			  .run_start = hidden(0),
			  .best = hidden(0),
			  .best_start = hidden(0) };
	u64 raw[2];
	bool dots;

	dst[0] = 0;
	if (bpf_probe_read_kernel(raw, 16, KERNEL(addr)))
		return E_FAULT;
	a.high = swap_bytes(raw[0]);
	a.low = swap_bytes(raw[1]);
	/* ::ffff:a.b.c.d, and ::a.b.c.d other than :: and ::1 */
	dots = how != IN_GROUPS && !a.high &&
	       (a.low >> 32 == 0xffff || (!(a.low >> 32) && a.low >> 16));
	if (dots && how == ALONE) {
		put_ipv4(dst, size, 0, (u32)(raw[1] >> 32));
		dst[size - 1] = 0;
		return 0;
	}
	if (dots)
		a.ngroups = 6;
	bpf_loop((u32)a.ngroups, find_run, &a, 0);
	bpf_loop((u32)a.ngroups, put_group, &a, 0);
	if (dots) {
		if (!(a.best && a.best_start + a.best == 6))
			out_char(&a.out, ':');
		put_ipv4(dst, size, a.out.pos, (u32)(raw[1] >> 32));
	} else
		out_char(&a.out, 0);
	dst[size - 1] = 0;
	return 0;
}

/* strict: always prints the whole IPv6 address. */
ROUTINE long d_inet_ntoa6(char *dst, u64 size, u64 addr, u64 strict)
{
	return put_ipv6(dst, size, addr, strict ? IN_DOTS : ALONE);
}

ROUTINE long d_inet_ntop(char *dst, u64 size, u64 family, u64 addr)
{
	u32 bytes;

	if ((u32)family == 10)
		return put_ipv6(dst, size, addr, IN_DOTS);
	dst[0] = 0;
	if ((u32)family != 2)
		return 1;
	if (bpf_probe_read_kernel(&bytes, 4, KERNEL(addr)))
		return E_FAULT;
	put_ipv4(dst, size, 0, bytes);
	return 0;
}

struct link_address {
	struct out out;
	u64 addr;
};

CALLBACK put_link_byte(u32 index, struct link_address *l)
{
	u64 i = index, v;

	if (i >= 20)
		return 1;
	v = char_at(l->addr + i);
	if (i)
		out_char(&l->out, ':');
	out_char(&l->out, hex_digit(v >> 4));
	out_char(&l->out, hex_digit(v & 15));
	return 0;
}

/* Prints a link address: 6 bytes for ARPHRD_ETHER and ARPHRD_IEEE802, 20 for ARPHRD_INFINIBAND. */
ROUTINE long d_link_ntop(char *dst, u64 size, u64 type, u64 addr)
{
	struct link_address l = { .out = { dst, size, hidden(0) }, .addr = addr };
	u32 n = (u32)type == 32 ? 20 : 6;
	char c;

	dst[0] = 0;
	if ((u32)type != 1 && (u32)type != 6 && (u32)type != 32)
		return 1;
	if (bpf_probe_read_kernel(&c, 1, KERNEL(addr)))
		return E_FAULT;
	bpf_loop(n, put_link_byte, &l, 0);
	out_char(&l.out, 0);
	dst[size - 1] = 0;
	return 0;
}
