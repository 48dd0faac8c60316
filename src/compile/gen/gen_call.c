/* Generates subroutines. Short ones become instructions, long ones call a routine of bpf/
 * (wire/routines.h). */
#include "compile/gen/gen_private.h"

#include "wire/language.h"
#include "wire/late.h"
#include "wire/offsets.h"
#include "wire/wire_record.h"
#include "wire/routines.h"

static const struct node *arg(const struct node *n, uint32_t i)
{
	const struct node *a = n->call.args;

	while (a && i--)
		a = a->next;
	return a;
}

static struct ir_val num(struct gen *g, const struct node *n, uint32_t i)
{
	return gen_expr(g, arg(n, i));
}

static struct ir_val checked(struct gen *g, struct ir_val r, struct ir_val addr, loc_t loc);

/* --- memory --- */

/* Copies user memory. A program that may sleep (uprobes) brings in pages that are not resident. */
static void read_user(struct gen *g, struct ir_val dst, struct ir_val size, struct ir_val from,
		      loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val r = ir_call(f, HELPER_READ_USER, 3, dst, size, from);
	uint32_t ok = ir_new_label(f);

	ir_if(f, r, IF_EQ, IR_I(0), ok);
	if (g->sleepable)
		ir_if(f, ir_call(f, HELPER_COPY_FROM_USER, 3, dst, size, from), IF_EQ, IR_I(0), ok);
	gen_fault(g, WIRE_FAULT_BADADDR, from, loc);
	ir_place(f, ok);
}

/* Asks what is known of a function by its texts: the arguments behind the condition are an address
 * and a length (0: up to a NUL), twice. Returns false when there are none. */
static bool ask_by_texts(struct gen *g, const struct node *n, uint32_t map, uint32_t salt,
			 struct ir_val *ret)
{
	struct ir_val at[2], length[2];
	struct ir_fn *f = g->f;

	if (!arg(n, 4))
		return false;
	for (uint32_t i = 0; i < 2; i++) {
		at[i] = ir_mov(f, num(g, n, 1 + 2 * i));
		length[i] = ir_bin(f, ALU_AND, num(g, n, 2 + 2 * i), IR_I(UINT16_MAX));
	}
	*ret = ir_routine(f, "d_id_texts", 5, ir_map(f, map), at[0], at[1],
			  ir_bin(f, ALU_OR, length[0], ir_bin(f, ALU_SHL, length[1], IR_I(32))),
			  IR_I(salt));
	return true;
}

/* Generates __by_id(condition, ...). A word of MAP_FUNCTIONS has the number of a function whose
 * condition is known, with the condition in bit 0. A word is written whole, so no lock is needed.
 * The name of a class of Ruby that has none yet is not remembered. */
static struct ir_val gen_by_id(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	const struct probe_arg *a = &g->cl->args.arg[0];
	const char *filter = g->cl->probes[0]->names_filter;
	uint32_t map = gen_fixed_map(g, MAP_FUNCTIONS), salt = 0, done = ir_new_label(f);
	struct ir_val id, at, v;
	bool known[LAZY_COUNT];

	for (const char *c = filter; *c; c++)
		salt = (salt ^ (uint8_t)*c) * 0x01000193; /* FNV-1a */
	salt &= INT32_MAX;
	if (!gen_function_id(g, a, map, salt, &id) && !ask_by_texts(g, n, map, salt, &id))
		return num(g, n, 0);
	v = ir_mov(f, id);
	ir_if(f, v, IF_ULE, IR_I(1), done);
	gen_lazy_save(g, known);
	ir_set(f, v, num(g, n, 0));
	ir_if(f, id, IF_EQ, IR_I(WIRE_FUNCTION_UNKNOWN), done);
	gen_unnamed(g, a, done);
	at = ir_bin(f, ALU_ADD, ir_map_value(f, map, 0),
		    ir_bin(f, ALU_SHL, ir_bin(f, ALU_SHR, id, IR_I(WIRE_FUNCTION_SHIFT)), IR_I(3)));
	ir_store(f, at, 0, 8, ir_bin(f, ALU_OR, id, v));
	gen_lazy_restore(g, known);
	ir_place(f, done);
	return v;
}

/* Generates __java_arg(): an int fills half of its word, in which bit 0 of the address marks it. */
static struct ir_val java_argument(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	uint32_t word = ir_new_object(f, 8, "java");
	struct ir_val frame = num(g, n, 0), code = num(g, n, 1), size = num(g, n, 2), at, shift;

	at = ir_routine(f, "d_java_arg", 4, frame, code, size, num(g, n, 3));
	gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), n->loc);
	read_user(g, ir_stack(f, word, 0), IR_I(8), ir_bin(f, ALU_AND, at, IR_I(~1ll)), n->loc);
	shift = ir_bin(f, ALU_SHL, ir_bin(f, ALU_AND, at, IR_I(1)), IR_I(5));
	return ir_bin(f, ALU_SAR, ir_bin(f, ALU_SHL, ir_load_stack(f, word, 0, 8, false), shift),
		      shift);
}

/* Takes n bytes of the firing's dynamic scratch memory. Returns their offset from SCRATCH_DYN. The
 * verifier knows the offset and the size only to be at most dynsize. The area therefore has twice
 * dynsize, so that offset + size stays inside it. */
static struct ir_val allocate(struct gen *g, struct ir_val n, loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val at, end;

	gen_fault_if(g, n, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_NOSCRATCH, n, loc);
	at = ir_mov(f, ir_bin(f, ALU_AND, ir_bin(f, ALU_ADD, g->top, IR_I(7)), IR_I(~7ll)));
	gen_fault_if(g, at, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_NOSCRATCH, n, loc);
	end = ir_bin(f, ALU_ADD, at, n);
	gen_fault_if(g, end, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_NOSCRATCH, n, loc);
	ir_set(f, g->top, end);
	return at;
}

static struct ir_val copyin(struct gen *g, const struct node *n, bool copy)
{
	struct ir_fn *f = g->f;
	struct ir_val from = copy ? num(g, n, 0) : IR_I(0), size = num(g, n, copy ? 1 : 0), at;
	struct ir_val base = gen_lazy(g, LAZY_SCRATCH_ADDR), scratch = gen_lazy(g, LAZY_SCRATCH);

	at = allocate(g, size, n->loc);
	if (copy) {
		/* Scripts put a NUL behind the bytes that they copied: take one byte more. */
		ir_set(f, g->top, ir_bin(f, ALU_ADD, g->top, IR_I(1)));
		read_user(g, ir_bin(f, ALU_ADD, ir_bin(f, ALU_ADD, scratch, at), IR_I(SCRATCH_DYN)),
			  size, from, n->loc);
	}
	return ir_bin(f, ALU_ADD, ir_bin(f, ALU_ADD, base, at), IR_I(SCRATCH_DYN));
}

/* Generates memref(addr, n): two words of scratch memory. */
static struct ir_val memref(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val addr = num(g, n, 0), len = num(g, n, 1), at, base, scratch;

	base = gen_lazy(g, LAZY_SCRATCH_ADDR);
	scratch = gen_lazy(g, LAZY_SCRATCH);
	at = allocate(g, IR_I(16), n->loc);
	scratch = ir_bin(f, ALU_ADD, scratch, at);
	ir_store(f, scratch, SCRATCH_DYN, 8, addr);
	ir_store(f, scratch, SCRATCH_DYN + 8, 8, len);
	return ir_bin(f, ALU_ADD, ir_bin(f, ALU_ADD, base, at), IR_I(SCRATCH_DYN));
}

/* Generates copyinto(from, n, to) and bcopy(from, to, n). All the bytes at `to` must be memory of
 * alloca() or copyin(). */
static void copy_to(struct gen *g, const struct node *n, bool user)
{
	struct ir_fn *f = g->f;
	struct ir_val from = num(g, n, 0), second = num(g, n, 1), third = num(g, n, 2),
		      size = user ? second : third, to = user ? third : second, rel, end, r;

	rel = ir_bin(f, ALU_SUB, to,
		     ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH_ADDR), IR_I(SCRATCH_DYN)));
	gen_fault_if(g, rel, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_BADADDR, to, n->loc);
	gen_fault_if(g, size, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_BADSIZE, size, n->loc);
	end = ir_bin(f, ALU_ADD, rel, size);
	gen_fault_if(g, end, IF_UGT, g->top, WIRE_FAULT_BADSIZE, size, n->loc);
	gen_fault_if(g, end, IF_UGT, IR_I(g->dynsize), WIRE_FAULT_BADSIZE, size, n->loc);
	to = ir_bin(f, ALU_ADD, ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), rel),
		    IR_I(SCRATCH_DYN));
	if (user) {
		read_user(g, to, size, from, n->loc);
		return;
	}
	if (gen_is_own(g, arg(n, 0)))
		gen_check_own(g, from, 0, size, n->loc);
	r = ir_call(f, HELPER_READ_KERNEL, 3, to, size, from);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, from, n->loc);
}

/* Writes `size` bytes at `from`, a pointer that the verifier tracks, to the process's memory. */
static void write_user(struct gen *g, struct ir_val to, struct ir_val from, struct ir_val size,
		       loc_t loc)
{
	struct ir_val r = ir_call(g->f, HELPER_WRITE_USER, 3, to, from, size);

	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, to, loc);
}

/* Generates copyout(from, to, n). Copies through scratch memory. */
static void copy_out(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val from = num(g, n, 0), to = num(g, n, 1), size = num(g, n, 2), at, r;

	at = allocate(g, size, n->loc);
	at = ir_bin(f, ALU_ADD, ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), at),
		    IR_I(SCRATCH_DYN));
	r = ir_call(f, HELPER_READ_KERNEL, 3, at, size, from);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, from, n->loc);
	write_user(g, to, at, size, n->loc);
}

/* Generates copyoutstr(s, to, max). Writes at most max bytes, including the NUL when it fits. */
static void copy_text_out(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val text = gen_scratch_temp(g, g->strsize), to = num(g, n, 1), max = num(g, n, 2),
		      size;
	uint32_t none = ir_new_label(f), fits = ir_new_label(f);

	gen_str_into(g, arg(n, 0), text, 0, g->strsize);
	size = ir_mov(f, checked(g, ir_routine(f, "d_strlen", 2, text, IR_I(g->strsize)), IR_I(0),
				 n->loc));
	ir_set(f, size, ir_bin(f, ALU_ADD, size, IR_I(1)));
	ir_if(f, size, IF_ULE, max, fits);
	ir_set(f, size, max);
	ir_place(f, fits);
	ir_if(f, size, IF_EQ, IR_I(0), none);
	ir_if(f, size, IF_UGT, IR_I(g->strsize), none);
	write_user(g, to, text, size, n->loc);
	ir_place(f, none);
}

/* Handles a string that is not resident. Leaves its place in the record empty, and has it read when
 * the system call returns. */
static void read_later(struct gen *g, struct ir_val addr, int32_t off, struct ir_val size,
		       loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val number = ir_new_reg(f), ok;
	uint32_t item = ir_new_object(f, sizeof(struct wire_late_item), "late"),
		 have = ir_new_label(f);
	int32_t late = offsetof(struct wire_record, late);

	ir_store(f, g->rec, off, 1, IR_I(0));
	ir_set(f, number, ir_load(f, g->rec, late, 4, false));
	ir_if(f, number, IF_NE, IR_I(0), have);
	ir_set(f, number,
	       ir_routine(f, "d_late_number", 1, ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0)));
	ir_store(f, g->rec, late, 4, number);
	ir_place(f, have);
	ir_store_stack(f, item, offsetof(struct wire_late_item, address), 8, addr);
	ir_store_stack(f, item, offsetof(struct wire_late_item, number), 4, number);
	ir_store_stack(f, item, offsetof(struct wire_late_item, offset), 4, IR_I(off));
	ir_store_stack(f, item, offsetof(struct wire_late_item, probe), 4, g->probe);
	ir_store_stack(f, item, offsetof(struct wire_late_item, size), 4, size);
	ok = ir_routine(f, "d_late_add", 5, ir_map(f, gen_fixed_map(g, MAP_LATE)),
			ir_map(f, gen_fixed_map(g, MAP_COUNTERS)),
			ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0), addr,
			ir_stack(f, item, 0));
	gen_fault_if(g, ok, IF_EQ, IR_I(0), WIRE_FAULT_BADADDR, addr, loc);
	g->uses_late = true;
}

/* Returns the most bytes that copyinstr() writes, at most `size`. A constant second argument counts
 * the NUL, as in DTrace on Linux; any other is a length, as on Solaris. More than strsize is
 * strsize. */
static struct ir_val most_bytes(struct gen *g, const struct node *n, uint32_t size)
{
	const uint64_t strsize = (uint64_t)opt_num(g->options, OPT_STRSIZE);
	const uint32_t limit = strsize < size ? (uint32_t)strsize : size;
	const struct node *max = arg(n, 1);
	struct ir_fn *f = g->f;
	struct ir_val length;
	uint32_t less;

	if (!max)
		return IR_I(size);
	if (max->kind == N_INT)
		return IR_I(max->i.value >= limit ? limit : max->i.value ? max->i.value : 1);
	length = ir_mov(f, num(g, n, 1));
	less = ir_new_label(f);
	ir_if(f, length, IF_ULT, IR_I(limit - 1), less);
	ir_set(f, length, IR_I(limit - 1));
	ir_place(f, less);
	ir_set(f, length, ir_bin(f, ALU_ADD, length, IR_I(1)));
	return length;
}

static void copyinstr(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		      uint32_t room)
{
	struct ir_fn *f = g->f;
	struct ir_val addr = num(g, n, 0), size = most_bytes(g, n, room), r;
	uint32_t ok = ir_new_label(f);

	r = ir_call(f, HELPER_READ_USER_STR, 3, ir_bin(f, ALU_ADD, dst, IR_I(off)), size, addr);
	ir_if(f, r, IF_SGE, IR_I(0), ok);
	/* Bring in the string's first page, and then the next if it crosses the end of the
	 * first. */
	for (int page = 0; page < 2 && g->sleepable; page++) {
		struct ir_val at =
			page ? ir_bin(f, ALU_ADD, ir_bin(f, ALU_OR, addr, IR_I(4095)), IR_I(1))
			     : addr;
		uint32_t byte = ir_new_object(f, 8, "byte");

		ir_store_stack(f, byte, 0, 8, IR_I(0));
		(void)ir_call(f, HELPER_COPY_FROM_USER, 3, ir_stack(f, byte, 0), IR_I(1), at);
		r = ir_call(f, HELPER_READ_USER_STR, 3, ir_bin(f, ALU_ADD, dst, IR_I(off)), size,
			    addr);
		ir_if(f, r, IF_SGE, IR_I(0), ok);
	}
	if (g->attach == ATTACH_SYSCALL_ENTRY && !g->target->inside && g->rec_live &&
	    dst.kind == IR_REG && dst.reg == g->rec.reg)
		read_later(g, addr, off, size, n->loc);
	else
		gen_fault(g, WIRE_FAULT_BADADDR, addr, n->loc);
	ir_place(f, ok);
}

/* --- speculations --- */

static struct ir_val speculation(struct gen *g)
{
	struct ir_fn *f = g->f;
	struct ir_val state = ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0), id = ir_new_reg(f),
		      old;
	int64_t n = opt_num(g->options, OPT_NSPEC);
	uint32_t done = ir_new_label(f);

	if (n > 64)
		n = 64;
	for (int64_t i = 0; i < n; i++) {
		ir_set(f, id, IR_I(i + 1));
		old = ir_xchg(f, state,
			      (int32_t)(offsetof(struct wire_state, spec) + 4 * (size_t)i), 4,
			      IR_I(1));
		ir_if(f, old, IF_EQ, IR_I(0), done);
	}
	ir_set(f, id, IR_I(0));
	gen_count(g, IR_I(WIRE_FAIL_SPEC));
	ir_place(f, done);
	return id;
}

/* --- kernel objects --- */

uint32_t gen_offset_of(struct gen *g, const char *type, const char *member, struct type_member *ret)
{
	type_id t;

	return type_lookup(g->types, NULL, TYPE_STRUCT, type, &t) &&
			       type_find_member(g->types, t, member, ret)
		       ? (uint32_t)(ret->bit_offset / 8)
		       : WIRE_NO_OFFSET;
}

static struct ir_val offsets(struct gen *g)
{
	if (!g->offsets_at) {
		struct wire_offsets o;
		struct type_member m;

#define X(field, s, mem) o.field = gen_offset_of(g, s, mem, &m);
		WIRE_OFFSETS(X)
#undef X
		g->offsets_at = gen_rodata(g, &o, sizeof(o), 8) + 1;
	}
	return ir_map_value(g->f, gen_fixed_map(g, MAP_RODATA), g->offsets_at - 1);
}

struct ir_val gen_progenyof(struct gen *g, struct ir_val pid)
{
	return ir_routine(g->f, "d_progenyof", 2, pid, offsets(g));
}

static struct ir_val lock_word(struct gen *g, const struct node *n, const char *type,
			       const char *member)
{
	uint32_t size, off = gen_kernel_offset(g, type, member, &size, n->loc);

	return gen_kernel_read(g, num(g, n, 0), off, 8, false, n->loc);
}

static struct ir_val mutex_owner(struct gen *g, const struct node *n)
{
	/* The low three bits of the owner are flags (kernel/locking/mutex.h). */
	return ir_bin(g->f, ALU_AND, lock_word(g, n, "mutex", "owner"), IR_I(~7ll));
}

static struct ir_val is(struct gen *g, struct ir_val a, enum ir_cond c, struct ir_val b)
{
	struct ir_val v = ir_new_reg(g->f);
	uint32_t done = ir_new_label(g->f);

	ir_set(g->f, v, IR_I(1));
	ir_if(g->f, a, c, b, done);
	ir_set(g->f, v, IR_I(0));
	ir_place(g->f, done);
	return v;
}

/* Returns the CPU's number in a table that the host fills through the compile target. */
static struct ir_val cpu_table(struct gen *g, struct ir_val cpu, const int32_t *const *table,
			       uint32_t *at, void (*find)(struct compile_target *))
{
	struct ir_fn *f = g->f;
	struct ir_val v = ir_new_reg(f), base;
	uint32_t done = ir_new_label(f);

	ir_set(f, v, IR_I(0));
	if (!*table && find)
		find(g->target);
	if (!*table)
		return v;
	if (!*at)
		*at = gen_rodata(g, *table, g->target->ncpus * 4, 8);
	ir_if(f, cpu, IF_UGE, IR_I(g->target->ncpus), done);
	base = ir_map_value(f, gen_fixed_map(g, MAP_RODATA), *at);
	ir_set(f, v,
	       ir_load(f, ir_bin(f, ALU_ADD, base, ir_bin(f, ALU_SHL, cpu, IR_I(2))), 0, 4, true));
	ir_place(f, done);
	return v;
}

/* Returns an entry of the state page's array at `offset`. The array has `count` entries, a power of
 * 2, of 1 << shift bytes. */
static struct ir_val state_number(struct gen *g, struct ir_val which, size_t offset, uint32_t count,
				  uint32_t shift)
{
	struct ir_fn *f = g->f;
	struct ir_val at =
		ir_bin(f, ALU_SHL, ir_bin(f, ALU_AND, which, IR_I(count - 1)), IR_I(shift));

	return ir_load(f, ir_bin(f, ALU_ADD, ir_map_value(f, gen_fixed_map(g, MAP_STATE), 0), at),
		       (int32_t)offset, 1u << shift, false);
}

/* --- the table --- */

/* The bytes that htons() and the like reverse, 0: other. */
static uint32_t gen_swap_size(enum subr_id id)
{
	switch (id) {
	case SUBR_HTONS:
	case SUBR_NTOHS: return 2;
	case SUBR_HTONL:
	case SUBR_NTOHL: return 4;
	case SUBR_HTONLL:
	case SUBR_NTOHLL: return 8;
	default: return 0;
	}
}

static struct ir_val checked(struct gen *g, struct ir_val r, struct ir_val addr, loc_t loc)
{
	gen_fault_if(g, r, IF_EQ, IR_I(-14), WIRE_FAULT_BADADDR, addr, loc);
	return r;
}

static struct ir_val find(struct gen *g, const struct node *n, const char *routine,
			  struct ir_val start)
{
	struct ir_val s = gen_str_plain(g, arg(n, 0)), needle = gen_str_plain(g, arg(n, 1));

	if (arg(n, 2))
		start = num(g, n, 2);
	return ir_ext(g->f,
		      checked(g, ir_routine(g->f, routine, 4, s, needle, start, IR_I(g->strsize)),
			      s, n->loc),
		      4, true);
}

struct ir_val gen_subr(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	enum subr_id id = n->id->subr;
	struct ir_val v, w;

	if (gen_swap_size(id))
		return ir_swap(f, num(g, n, 0), gen_swap_size(id));
	switch (id) {
	case SUBR_ALLOCA: return copyin(g, n, false);
	case SUBR_COPYIN: return copyin(g, n, true);
	case SUBR_MEMREF: return memref(g, n);
	case SUBR_COPYINTO: copy_to(g, n, true); return IR_I(0);
	case SUBR_BCOPY: copy_to(g, n, false); return IR_I(0);
	case SUBR_COPYOUT: copy_out(g, n); return IR_I(0);
	case SUBR_COPYOUTSTR: copy_text_out(g, n); return IR_I(0);
	case SUBR_STRLEN:
		v = gen_str_plain(g, arg(n, 0));
		return checked(g, ir_routine(f, "d_strlen", 2, v, IR_I(g->strsize)), v, n->loc);
	case SUBR_INDEX: return find(g, n, "d_index", IR_I(0));
	case SUBR_RINDEX: return find(g, n, "d_rindex", IR_I(WIRE_START_ABSENT));
	case SUBR_STRTOLL:
		v = gen_str_plain(g, arg(n, 0));
		w = arg(n, 1) ? num(g, n, 1) : IR_I(10);
		return ir_routine(f, "d_strtoll", 3, v, w, IR_I(g->strsize));
	case SUBR_RAND: return ir_ext(f, ir_call(f, HELPER_PRANDOM, 0), 4, true);
	case SUBR_SPECULATION: return speculation(g);
	case SUBR_PROGENYOF: v = num(g, n, 0); return gen_progenyof(g, v);
	case SUBR_GETF: v = num(g, n, 0); return ir_routine(f, "d_getfile", 2, v, offsets(g));
	case SUBR_CPU_CHIP:
		return cpu_table(g, num(g, n, 0), &g->target->cpu_chip, &g->chips_at,
				 g->target->find_cpus);
	case SUBR_CPU_NODE:
		return cpu_table(g, num(g, n, 0), &g->target->cpu_node, &g->nodes_at,
				 g->target->find_cpus);
	case SUBR_CPU_MHZ:
		return cpu_table(g, num(g, n, 0), &g->target->cpu_mhz, &g->clocks_at,
				 g->target->find_clocks);
	case SUBR_BY_ID: return gen_by_id(g, n);
	case SUBR_JAVA_ARG: return java_argument(g, n);
	case SUBR_LOAD:
		return state_number(g, num(g, n, 0), offsetof(struct wire_state, load), 4, 2);
	case SUBR_MEMORY:
		return state_number(g, num(g, n, 0), offsetof(struct wire_state, memory), 8, 3);
	case SUBR_GETMAJOR: return ir_bin(f, ALU_SHR, ir_ext(f, num(g, n, 0), 4, false), IR_I(20));
	case SUBR_GETMINOR: return ir_bin(f, ALU_AND, num(g, n, 0), IR_I(0xfffff));
	case SUBR_MUTEX_OWNER: return mutex_owner(g, n);
	case SUBR_MUTEX_OWNED: v = mutex_owner(g, n); return is(g, v, IF_EQ, gen_thread(g));
	case SUBR_MUTEX_TYPE_ADAPTIVE: (void)num(g, n, 0); return IR_I(1);
	case SUBR_MUTEX_TYPE_SPIN: (void)num(g, n, 0); return IR_I(0);
	/* Bit 0 of rw_semaphore.count is a writer. Bits from 8 on count readers
	 * (kernel/locking/rwsem.c). */
	case SUBR_RW_READ_HELD:
		v = lock_word(g, n, "rw_semaphore", "count");
		return is(g, ir_bin(f, ALU_SAR, v, IR_I(8)), IF_SGT, IR_I(0));
	case SUBR_RW_WRITE_HELD:
	case SUBR_RW_ISWRITER:
		return ir_bin(f, ALU_AND, lock_word(g, n, "rw_semaphore", "count"), IR_I(1));
	default:
		diag_error(g->diags, n->loc, n->end, "D_UNKNOWN", "%s() cannot be used here",
			   n->call.func);
		g->failed = true;
		return IR_I(0);
	}
}

/* Returns the name of a routine of the form f(dst, size, text) or f(dst, size, text, second). */
static const char *text_routine(enum subr_id id, bool *ret_char, bool *ret_second)
{
	*ret_char = id == SUBR_STRCHR || id == SUBR_STRRCHR;
	*ret_second = id == SUBR_STRSTR || id == SUBR_STRJOIN || id == SUBR_JSON;
	switch (id) {
	case SUBR_BASENAME: return "d_basename";
	case SUBR_DIRNAME: return "d_dirname";
	case SUBR_CLEANPATH: return "d_cleanpath";
	case SUBR_TOUPPER: return "d_toupper";
	case SUBR_TOLOWER: return "d_tolower";
	case SUBR_STRCHR: return "d_strchr";
	case SUBR_STRRCHR: return "d_strrchr";
	case SUBR_STRSTR: return "d_strstr";
	case SUBR_STRJOIN: return "d_strjoin";
	case SUBR_JSON: return "d_json";
	default: return NULL;
	}
}

static struct ir_val next_token(struct gen *g, const struct node *n, struct ir_val out,
				uint32_t size)
{
	struct ir_fn *f = g->f;
	const struct node *s = arg(n, 0);
	struct ir_val text = IR_I(0), delims, r;

	while (s->kind == N_CAST || s->kind == N_STRINGOF)
		s = s->kind == N_CAST ? s->t.a : s->e.a;
	if (!(s->kind == N_INT && s->i.value == 0))
		text = gen_str_plain(g, arg(n, 0));
	delims = gen_str_plain(g, arg(n, 1));
	r = ir_routine(f, "d_strtok", 5, out, IR_I(size), text, delims,
		       ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), IR_I(g->strtok_at)));
	return checked(g, r, text, n->loc);
}

static struct ir_val path_of(struct gen *g, const struct node *n)
{
	struct ir_val p = num(g, n, 0);
	uint32_t size;

	if (n->id->subr == SUBR_FILE_PATH)
		p = ir_bin(g->f, ALU_ADD, p,
			   IR_I(gen_kernel_offset(g, "file", "f_path", &size, n->loc)));
	return p;
}

/* Returns the least size of a routine's destination. Shorter destinations are filled through
 * scratch memory. */
static uint32_t least(enum subr_id id)
{
	switch (id) {
	case SUBR_LLTOSTR: return 72;
	case SUBR_INET_NTOA6:
	case SUBR_INET_NTOP: return 48;
	case SUBR_LINK_NTOP: return 64;
	default: return 16;
	}
}

/* Returns true for subroutines that may return NULL. Their routines return 1 then, and the text is
 * "". */
static bool may_be_null(enum subr_id id)
{
	return id == SUBR_STRTOK || id == SUBR_STRSTR || id == SUBR_STRCHR || id == SUBR_STRRCHR;
}

static void put_string(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		       uint32_t size, bool null_is_empty)
{
	struct ir_fn *f = g->f;
	enum subr_id id = n->id->subr;
	bool with_char, with_second;
	const char *routine = text_routine(id, &with_char, &with_second);
	struct ir_val a = IR_I(0), b, r, out;

	if (id == SUBR_COPYINSTR) {
		copyinstr(g, n, dst, off, size);
		return;
	}
	if (size < least(id)) {
		out = gen_scratch_temp(g, least(id));
		put_string(g, n, out, 0, least(id), null_is_empty);
		r = ir_call(f, HELPER_READ_KERNEL_STR, 3, ir_bin(f, ALU_ADD, dst, IR_I(off)),
			    IR_I(size), out);
		gen_fault_if(g, r, IF_SLT, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), n->loc);
		return;
	}
	out = ir_bin(f, ALU_ADD, dst, IR_I(off));
	if (routine) {
		a = gen_str_plain(g, arg(n, 0));
		if (with_char || with_second) {
			b = with_char ? num(g, n, 1) : gen_str_plain(g, arg(n, 1));
			r = ir_routine(f, routine, 4, out, IR_I(size), a, b);
		} else {
			r = ir_routine(f, routine, 3, out, IR_I(size), a);
		}
		r = checked(g, r, a, n->loc);
	} else if (id == SUBR_STRTOK) {
		r = next_token(g, n, out, size);
	}
	if (may_be_null(id) && !null_is_empty)
		gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), n->loc);
	if (routine || id == SUBR_STRTOK)
		return;
	switch (id) {
	case SUBR_SUBSTR:
		a = gen_str_plain(g, arg(n, 0));
		b = num(g, n, 1);
		r = arg(n, 2) ? num(g, n, 2) : IR_I(WIRE_START_ABSENT);
		r = ir_routine(f, "d_substr", 5, out, IR_I(size), a, b, r);
		break;
	case SUBR_LLTOSTR:
		a = num(g, n, 0);
		b = arg(n, 1) ? num(g, n, 1) : IR_I(10);
		r = ir_routine(f, "d_lltostr", 4, out, IR_I(size), a, b);
		break;
	case SUBR_INET_NTOA:
		a = num(g, n, 0);
		r = ir_routine(f, "d_inet_ntoa", 3, out, IR_I(size), a);
		break;
	case SUBR_INET_NTOA6:
		a = num(g, n, 0);
		b = arg(n, 1) ? num(g, n, 1) : IR_I(0);
		r = ir_routine(f, "d_inet_ntoa6", 4, out, IR_I(size), a, b);
		break;
	case SUBR_INET_NTOP:
	case SUBR_LINK_NTOP:
		b = num(g, n, 0);
		a = num(g, n, 1);
		r = ir_routine(f, id == SUBR_INET_NTOP ? "d_inet_ntop" : "d_link_ntop", 4, out,
			       IR_I(size), b, a);
		gen_fault_if(g, r, IF_EQ, IR_I(1), WIRE_FAULT_ILLOP, b, n->loc);
		break;
	case SUBR_MEMSTR:
		a = num(g, n, 0);
		b = num(g, n, 1);
		r = ir_routine(f, "d_memstr", 5, out, IR_I(size), a, b, num(g, n, 2));
		break;
	case SUBR_D_PATH:
	case SUBR_FS_PATH:
	case SUBR_FILE_PATH:
		a = path_of(g, n);
		r = ir_routine(f, "d_path", 4, out, IR_I(size), a, offsets(g));
		break;
	case SUBR_DENTRY_PATH:
	case SUBR_MOUNT_POINT:
		a = num(g, n, 0);
		r = ir_routine(f, id == SUBR_DENTRY_PATH ? "d_dentry_path" : "d_mount_point", 4,
			       out, IR_I(size), a, offsets(g));
		break;
	case SUBR_JAVA_TEXT:
		a = num(g, n, 0);
		b = num(g, n, 1);
		r = ir_routine(f, "d_java_text", 5, out, IR_I(size), a, b, num(g, n, 2));
		break;
	case SUBR_PSARGS:
		a = num(g, n, 0);
		r = ir_routine(f, "d_psargs", 4, out, IR_I(size), a, offsets(g));
		break;
	default:
		diag_error(g->diags, n->loc, n->end, "D_UNKNOWN", "%s() is not a string here",
			   n->call.func);
		g->failed = true;
		return;
	}
	(void)checked(g, r, a, n->loc);
}

void gen_subr_string(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		     uint32_t size)
{
	bool null_is_empty = g->null_is_empty;

	g->null_is_empty = false; /* not for the arguments */
	put_string(g, n, dst, off, size, null_is_empty);
	g->null_is_empty = null_is_empty;
}
