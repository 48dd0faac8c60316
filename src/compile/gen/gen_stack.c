/* Generates stack() and ustack(): frames in a record, or an id in a key.
 *
 * Some probes fire for another thread (sched:::on-cpu: the switch still runs on the old thread's
 * stack). They use the stacks from the time their thread last left a CPU. gen_save_stacks()
 * generates the program that saves the ids of these stacks in thread storage. */
#include "compile/gen/gen_private.h"

#include "wire/language.h"
#include "wire/offsets.h"
#include "wire/wire_record.h"
#include "wire/routines.h"
#include "wire/wire_unwind.h"

static bool is_user(const struct field *fl)
{
	return fl->kind == FIELD_USTACK || fl->kind == FIELD_USTACKID;
}

uint32_t gen_frames(struct gen *g, const struct node *n)
{
	const struct node *arg = n->call.args;
	int64_t max = opt_num(g->options, OPT_MAXFRAMES), frames;

	frames = arg && arg->kind == N_INT
			 ? (int64_t)arg->i.value
			 : opt_num(g->options,
				   n->id->subr == SUBR_STACK ? OPT_STACKFRAMES : OPT_USTACKFRAMES);
	if (frames > max)
		frames = max;
	return frames < 1 ? 1 : frames > WIRE_STACK_FRAMES ? WIRE_STACK_FRAMES : (uint32_t)frames;
}

/* In BEGIN and END the kernel's frames are those of descry's own bpf(2): nothing that is traced. */
static bool has_kernel_stack(const struct gen *g)
{
	return g->attach != ATTACH_SELF;
}

struct ir_val gen_get_stack(struct gen *g, struct ir_val dst, uint32_t size, bool user)
{
	if (!user && !has_kernel_stack(g))
		return IR_I(0);
	return ir_call(g->f, HELPER_GET_STACK, 4, g->ctx, dst, IR_I(size),
		       IR_I(user ? USER_STACK : gen_skipped_frames(g)));
}

/* Returns the address of struct wire_unwind_offsets in the read-only data: where the kernel keeps
 * mappings, for the walk. */
static struct ir_val unwind_offsets(struct gen *g)
{
	struct wire_unwind_offsets o;
	struct type_member m;
	uint32_t context;

	if (!g->unwind_offsets_at) {
#define X(field, s, mem) o.field = gen_offset_of(g, s, mem, &m);
		WIRE_UNWIND_OFFSETS(X)
#undef X
		o.mm_vdso = WIRE_NO_OFFSET;
		context = gen_offset_of(g, "mm_struct", "context", &m);
		if (context != WIRE_NO_OFFSET &&
		    type_find_member(g->types, type_strip(g->types, m.type), "vdso", &m))
			o.mm_vdso = context + (uint32_t)(m.bit_offset / 8);
		/* struct timespec64 before 6.11 */
		if (o.inode_mtime_sec == WIRE_NO_OFFSET || o.inode_mtime_nsec == WIRE_NO_OFFSET) {
			o.inode_mtime_sec = o.inode_mtime_6_7 != WIRE_NO_OFFSET ? o.inode_mtime_6_7
										: o.inode_mtime_old;
			o.inode_mtime_nsec = o.inode_mtime_sec == WIRE_NO_OFFSET
						     ? WIRE_NO_OFFSET
						     : o.inode_mtime_sec + 8;
		}
		o.java = g->target->meets_java && g->target->meets_java(g->target->meets_arg);
		o.javascript = g->target->meets_javascript &&
			       g->target->meets_javascript(g->target->meets_arg);
		g->unwind_offsets_at = gen_rodata(g, &o, sizeof(o), 8) + 1;
	}
	return ir_map_value(g->f, gen_fixed_map(g, MAP_RODATA), g->unwind_offsets_at - 1);
}

/* Walks the user stack by unwind tables into s (struct wire_walk). Returns bytes of frames, or
 * -errno. Counts how the walk ended and sets *ret_end to it, unless ret_end is NULL. */
static struct ir_val walk(struct gen *g, struct ir_val s, uint32_t frames, struct ir_val *ret_end)
{
	struct ir_fn *f = g->f;
	struct ir_val n, end;

	if (gen_by_exits(g))
		frames |= WIRE_UNWIND_RETURNED;
	ir_store(f, s, offsetof(struct wire_stack, n), 4, IR_I(frames));
	n = ir_routine(f, "d_ustack", 5, ir_map(f, gen_fixed_map(g, MAP_UNWIND)),
		       ir_map(f, gen_fixed_map(g, MAP_UNWIND_PROCESSES)),
		       ir_map(f, gen_fixed_map(g, MAP_UNWIND_WANTED)), s, unwind_offsets(g));
	end = ir_routine(f, "d_ustack_end", 2, ir_map(f, gen_fixed_map(g, MAP_COUNTERS)), s);
	if (ret_end)
		*ret_end = end;
	return n;
}

static struct ir_val walk_language(struct gen *g, struct ir_val s)
{
	struct ir_fn *f = g->f;

	return ir_routine(f, "d_language", 5, ir_map(f, gen_fixed_map(g, MAP_UNWIND)),
			  ir_map(f, gen_fixed_map(g, MAP_UNWIND_PROCESSES)),
			  ir_map(f, gen_fixed_map(g, MAP_UNWIND_WANTED)), s, unwind_offsets(g));
}

/* The stack that walk() took, with the frames of the interpreted language that the thread runs.
 * Returns bytes of frames. */
static struct ir_val add_language(struct gen *g, struct ir_val s, struct ir_val n)
{
	struct ir_fn *f = g->f;
	struct ir_val all = ir_new_reg(f);
	uint32_t done = ir_new_label(f);

	ir_set(f, all, n);
	ir_if(f, all, IF_SLE, IR_I(0), done);
	ir_set(f, all, walk_language(g, s));
	ir_place(f, done);
	return all;
}

/* Those frames alone, at most `frames` of them, for lstack( ). A walk of no native frame asks for a
 * process that the engine does not know yet; the in-process engine knows its processes. */
static struct ir_val language_alone(struct gen *g, struct ir_val s, uint32_t frames,
				    const struct node *call)
{
	const struct node *lines = call->call.args ? call->call.args->next : NULL;
	uint32_t wanted = frames << WIRE_LANGUAGE_ALONE;
	struct ir_fn *f = g->f;

	if (!g->target->unwind || !gen_current_thread(g))
		return IR_I(0);
	if (!g->target->inside)
		(void)walk(g, s, 0, NULL);
	if (lines && lines->i.value)
		wanted |= 1u << WIRE_LANGUAGE_LINES;
	ir_store(f, s, offsetof(struct wire_stack, n), 4, IR_I(wanted));
	ir_store(f, s, offsetof(struct wire_stack, end), 4, IR_I(1 + WIRE_UNWIND_END_DEEP));
	return walk_language(g, s);
}

/* Returns true for a sample, which interrupts a thread. Most samples are of user mode, where there
 * is no kernel stack. */
static bool is_sample(const struct gen *g)
{
	return (g->attach == ATTACH_PROFILE || g->attach == ATTACH_TICK) && !g->target->inside;
}

/* Returns the current stack's id, or -errno. alone: lstack( ), or NULL. */
static struct ir_val make_id(struct gen *g, bool user, uint32_t frames, const struct node *alone)
{
	struct ir_fn *f = g->f;
	struct ir_val s = gen_scratch_temp(g, sizeof(struct wire_walk)), id = ir_new_reg(f), n;
	uint32_t done = ir_new_label(f);

	if (!user && !has_kernel_stack(g))
		return IR_I(-2 /* -ENOENT */);
	if (!user && is_sample(g)) {
		ir_set(f, id, IR_I(-2 /* -ENOENT */));
		ir_if(f, gen_sampled_mode(g), IF_NE, IR_I(0), done);
	}
	if (alone) {
		n = language_alone(g, s, frames, alone);
	} else if (user && g->target->unwind) {
		n = add_language(g, s, walk(g, s, frames, NULL));
	} else {
		ir_store(f, s, offsetof(struct wire_stack, end), 4, IR_I(0));
		n = gen_get_stack(g, ir_bin(f, ALU_ADD, s, IR_I(offsetof(struct wire_stack, pc))),
				  8 * frames, user);
	}
	ir_set(f, id,
	       ir_routine(f, "d_stack_id", 4, ir_map(f, gen_fixed_map(g, MAP_STACKS)),
			  ir_map(f, gen_fixed_map(g, MAP_COUNTERS)), s, n));
	ir_place(f, done);
	return id;
}

static struct ir_val saved_id(struct gen *g, bool user)
{
	struct ir_fn *f = g->f;
	struct ir_val tls = gen_lazy(g, LAZY_TLS), id = ir_new_reg(f);
	uint32_t done = ir_new_label(f);

	ir_set(f, id, IR_I(-2 /* -ENOENT */));
	ir_if(f, tls, IF_EQ, IR_I(0), done);
	ir_set(f, id,
	       ir_load(f, tls,
		       user ? offsetof(struct wire_tls, user_stack)
			    : offsetof(struct wire_tls, kernel_stack),
		       8, false));
	ir_place(f, done);
	return id;
}

struct ir_val gen_user_stack(struct gen *g, uint32_t frames, struct ir_val *ret_pc)
{
	struct ir_val s = gen_scratch_temp(g, sizeof(struct wire_walk));

	*ret_pc = ir_bin(g->f, ALU_ADD, s, IR_I(offsetof(struct wire_stack, pc)));
	if (!gen_current_thread(g))
		return ir_routine(g->f, "d_stack_copy", 4,
				  ir_map(g->f, gen_fixed_map(g, MAP_STACKS)), saved_id(g, true),
				  *ret_pc, IR_I(8 * frames));
	if (g->target->unwind)
		return walk(g, s, frames | WIRE_UNWIND_ADDRESSES, NULL);
	return gen_get_stack(g, *ret_pc, 8 * frames, true);
}

static struct ir_val at_most(struct ir_fn *f, struct ir_val n, uint32_t max)
{
	struct ir_val r = ir_new_reg(f);
	uint32_t done = ir_new_label(f);

	ir_set(f, r, n);
	ir_if(f, r, IF_SLE, IR_I(max), done);
	ir_set(f, r, IR_I(max));
	ir_place(f, done);
	return r;
}

static int32_t put_process(struct gen *g, const struct field *fl, struct ir_val dst)
{
	int32_t at = (int32_t)fl->offset;

	if (!is_user(fl))
		return at;
	ir_store(g->f, dst, at, 4, gen_tgid(g));
	ir_store(g->f, dst, at + 4, 4, IR_I(0));
	return at + 8;
}

void gen_stack_id(struct gen *g, const struct field *fl, struct ir_val dst, const struct node *n)
{
	int32_t at = put_process(g, fl, dst);
	bool now = gen_current_thread(g) || gen_is_lstack(n);

	ir_store(g->f, dst, at, 8,
		 now ? make_id(g, is_user(fl), gen_frames(g, n), gen_is_lstack(n) ? n : NULL)
		     : saved_id(g, is_user(fl)));
}

void gen_stack_frames(struct gen *g, const struct field *fl, struct ir_val dst,
		      const struct node *call)
{
	struct ir_fn *f = g->f;
	int32_t at = put_process(g, fl, dst);
	uint32_t room = fl->size - (is_user(fl) ? 16 : 8);
	struct ir_val to = ir_bin(f, ALU_ADD, dst, IR_I(at + 8)), n;

	if (gen_is_lstack(call)) {
		struct ir_val s = gen_scratch_temp(g, sizeof(struct wire_walk));

		n = at_most(f, language_alone(g, s, room / 8, call), room);
		if (room == 8) /* a call costs more than the rest of the record */
			ir_store(f, dst, at + 8, 8,
				 ir_load(f, s, offsetof(struct wire_stack, pc), 8, false));
		else
			(void)ir_call(f, HELPER_READ_KERNEL, 3, to, IR_I(room),
				      ir_bin(f, ALU_ADD, s, IR_I(offsetof(struct wire_stack, pc))));
	} else if (gen_current_thread(g) && is_user(fl) && g->target->unwind) {
		struct ir_val s = gen_scratch_temp(g, sizeof(struct wire_walk)), end;

		n = at_most(f, add_language(g, s, walk(g, s, room / 8, &end)), room);
		ir_store(f, dst, at - 4, 4, end);
		(void)ir_call(f, HELPER_READ_KERNEL, 3, to, IR_I(room),
			      ir_bin(f, ALU_ADD, s, IR_I(offsetof(struct wire_stack, pc))));
	} else if (gen_current_thread(g))
		n = gen_get_stack(g, to, room, is_user(fl));
	else
		n = ir_routine(f, "d_stack_copy", 4, ir_map(f, gen_fixed_map(g, MAP_STACKS)),
			       saved_id(g, is_user(fl)), to, IR_I(room));
	ir_store(f, dst, at, 8, n);
}

/* Generates the program that saves stacks. needs: thread_arg names the thread that leaves. */
void gen_save_stacks(struct gen *g)
{
	struct ir_fn *f = g->f;
	struct ir_val tls;

	g->cl = NULL;
	g->bail = g->out;
	g->scratch_next = g->this_size;
	tls = gen_lazy(g, LAZY_TLS_RW);
	ir_if(f, tls, IF_EQ, IR_I(0), g->out);
	ir_store(f, tls, offsetof(struct wire_tls, user_stack), 8,
		 make_id(g, true, WIRE_STACK_FRAMES, NULL));
	ir_store(f, tls, offsetof(struct wire_tls, kernel_stack), 8,
		 make_id(g, false, WIRE_STACK_FRAMES, NULL));
}
