/* Verifies calls: functions of the program, bpf_loop(), and helpers with their arguments, maps and
 * results. */
#include "compile/jit/verify_private.h"
#include "data/image.h"

static void clobber_args(struct v *v)
{
	for (int i = 1; i <= 5; i++)
		v->s.r[i] = (struct val){ 0 };
}

static void new_link(struct v *v, uint32_t link)
{
	for (int i = 0; i < 11; i++)
		if (v->s.r[i].link == link)
			v->s.r[i].link = 0;
	for (int i = 0; i < SLOTS; i++)
		if (v->s.slot[i].link == link)
			v->s.slot[i].link = 0;
}

/* Enters the function of a call or loop. Joins the arguments into its entry, and forgets in the
 * caller the slots that it may write. */
static void verify_call_enter(struct v *v, uint32_t callee, const struct val args[5])
{
	struct state *s = xcalloc(1, sizeof(*s));

	for (int i = 0; i < 5; i++)
		s->r[i + 1] = args[i];
	s->r[10] = (struct val){ .kind = STACK, .id = callee };
	verify_flow(v, v->f->fns[callee].start, s);
	free(s);
	for (uint32_t i = 0; i < v->f->nfns; i++)
		if (v->fns[callee].writes[i])
			verify_writes_frame(v, i, v->fns[callee].writes[i], false);
	if (v->fns[callee].wild)
		verify_writes_any(v);
}

/* Verifies a call. Returns false when the function has not returned on any path seen so far. */
bool verify_call_function(struct v *v, const struct bpf_insn *ins)
{
	uint32_t callee = verify_fn_at(v->f, (uint32_t)((int64_t)v->pc + 1 + ins->imm));

	if (v->record)
		v->f->insn[v->pc].func = callee;
	verify_call_enter(v, callee, &v->s.r[1]);
	clobber_args(v);
	if (!v->fns[callee].returns)
		return false;
	v->s.r[0] = v->fns[callee].ret;
	new_link(v, v->pc + 1);
	if (v->s.r[0].null)
		v->s.r[0].link = v->pc + 1;
	return true;
}

static void loop(struct v *v)
{
	struct val *r = v->s.r, args[5] = { 0 };

	for (uint32_t i = 1; i <= 4; i++)
		verify_check_reg(v, i);
	if (r[2].kind != FUNC || r[2].null) {
		if (v->record)
			verify_refuse(v, "the loop's function is not known");
		return;
	}
	if (v->record)
		v->f->insn[v->pc].func = r[2].id;
	args[0] = number(0, JIT_LOOPS - 1);
	if (r[1].kind == NUMBER && r[1].hi && r[1].hi < JIT_LOOPS)
		args[0].hi = r[1].hi - 1;
	args[1] = r[3].kind ? r[3] : any;
	verify_call_enter(v, r[2].id, args);
	clobber_args(v);
	v->s.r[0] = any;
}

static uint64_t size_bound(const struct val *s, bool wide)
{
	if (s->kind != NUMBER)
		return UINT64_MAX;
	if (!wide && s->hi > UINT32_MAX)
		return UINT32_MAX;
	return s->hi;
}

bool jit_map_usable(const struct jit_env *env, uint32_t m, uint32_t helper)
{
	uint32_t kind = env->maps[m].kind;

	switch (helper) {
	case BPF_FUNC_ringbuf_reserve:
	case BPF_FUNC_ringbuf_output:
	case BPF_FUNC_ringbuf_query: return kind == WIRE_MAP_RING;
	case BPF_FUNC_task_storage_get:
	case BPF_FUNC_task_storage_delete:
		return kind == WIRE_MAP_TASK || kind == WIRE_MAP_OWN_TASK;
	default: return kind != WIRE_MAP_RING && kind != WIRE_MAP_TASK && kind != WIRE_MAP_OWN_TASK;
	}
}

uint32_t jit_key_size(const struct jit_env *env, int32_t map, uint32_t helper)
{
	uint32_t size = 4;

	if (map >= 0)
		return env->maps[map].key_size;
	for (uint32_t i = 0; i < env->nmaps && helper != BPF_FUNC_map_lookup_elem; i++)
		if (jit_map_usable(env, i, helper) && env->maps[i].key_size > size)
			size = env->maps[i].key_size;
	return size;
}

uint32_t jit_value_size(const struct jit_env *env, int32_t map, uint32_t helper)
{
	uint32_t size = 8;

	if (map >= 0)
		return env->maps[map].value_size;
	for (uint32_t i = 0; i < env->nmaps; i++)
		if (jit_map_usable(env, i, helper) && env->maps[i].value_size > size)
			size = env->maps[i].value_size;
	return size;
}

static void helper_args(struct v *v, const struct jit_helper *h, int32_t map)
{
	const struct wire_map *m = map >= 0 ? &v->env->maps[map] : NULL;
	struct jit_fact *f = &v->f->insn[v->pc];
	uint32_t key;

	for (uint32_t i = 0; h->args[i]; i++) {
		struct val *p = &v->s.r[i + 1];

		verify_check_reg(v, i + 1);
		switch (h->args[i]) {
		case 'm':
			if (m)
				break;
			/* An inner map, or a map whose address was read from memory, is checked at
			 * run time. */
			if (h->id == BPF_FUNC_map_lookup_elem) {
				verify_helper_memory(v, i + 1, sizeof(struct wire_map), false);
			} else if (v->record) {
				f->check |= 1 << 1;
				v->f->checks = true;
			}
			break;
		case 'k':
			if (v->record)
				f->key_known = f->key_own = false;
			if (m && h->id == BPF_FUNC_map_lookup_elem && m->key_size == 4 &&
			    (m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
			     m->kind == WIRE_MAP_AGG_ARRAY) &&
			    verify_known_key(v, &key)) {
				if (v->record) {
					f->key_known = true;
					f->key = key;
				}
				break;
			}
			if (v->record && m && verify_in_bounds(v, p, 0, m->key_size) &&
			    p->kind == STACK && p->id == v->fn && p->lo == p->hi) {
				f->key_own = true;
				f->key_at = (int16_t)p->lo;
			}
			verify_helper_memory(v, i + 1, jit_key_size(v->env, map, h->id), false);
			break;
		case 'V':
			if (p->kind == NUMBER && !p->hi)
				break;
			/* fall through */
		case 'v':
			verify_helper_memory(v, i + 1, jit_value_size(v->env, map, h->id), false);
			break;
		case 'w': verify_helper_memory(v, i + 1, size_bound(p + 1, false), true); break;
		case 'r': verify_helper_memory(v, i + 1, size_bound(p + 1, false), false); break;
		case 'l': verify_helper_memory(v, i + 1, size_bound(p + 1, true), false); break;
		case 'M':
			if (v->record && (p->kind != MAP || p->null))
				verify_refuse(v, "r%u is no map", i + 1);
			break;
		case 'S': verify_helper_memory(v, i + 1, sizeof(struct wire_stack), true); break;
		case 'W': verify_helper_memory(v, i + 1, sizeof(struct wire_walk), true); break;
		case 'O':
			verify_helper_memory(v, i + 1, sizeof(struct wire_unwind_offsets), false);
			break;
		case 'q': verify_helper_memory(v, i + 1, size_bound(p - 1, false), false); break;
		case 'g':
			if (p->kind == RECORD && !p->null && !p->lo && !p->hi) {
				if (v->record && h->id == BPF_FUNC_ringbuf_submit)
					f->record = p->id;
				break;
			}
			verify_helper_memory(v, i + 1, 8, true);
			break;
		case '.':
			/* probe_read() may read any byte of it. */
			verify_lose(v, p);
			break;
		}
	}
}

static bool reads_kernel(uint32_t helper)
{
	return helper == BPF_FUNC_probe_read_kernel || helper == BPF_FUNC_probe_read_kernel_str;
}

static bool reads(uint32_t helper)
{
	return reads_kernel(helper) || helper == BPF_FUNC_probe_read ||
	       helper == BPF_FUNC_probe_read_user || helper == BPF_FUNC_copy_from_user ||
	       helper == BPF_FUNC_probe_read_str || helper == BPF_FUNC_probe_read_user_str;
}

/* Returns true when the call uses an address that another process may have chosen. Helpers that
 * read the kernel's memory do not count, because they read no memory of the process where that
 * matters (jit_env.own_reads). */
static bool is_steered(const struct v *v, uint32_t helper)
{
	const struct val *p = &v->s.r[helper == BPF_FUNC_probe_write_user ? 1 : 3];

	return (helper == BPF_FUNC_probe_write_user || (reads(helper) && !reads_kernel(helper))) &&
	       p->shared && !(is_pointer(p) && verify_in_bounds(v, p, 0, 1));
}

/* Returns true when a helper that copies memory may copy something that other processes may have
 * written. */
static bool copies_shared(const struct v *v)
{
	const struct val *from = &v->s.r[3];
	const uint64_t size = size_bound(&v->s.r[2], false);

	if (!is_pointer(from))
		return from->shared;
	if (from->kind == VALUE && v->env->maps[from->id].kind == WIRE_MAP_OWN_TASK)
		return verify_is_shared(v, from, 0, (uint32_t)(size ? size : 1));
	return (from->kind == STACK && v->fns[from->id].shared) || verify_is_shared(v, from, 0, 1);
}

/* Follows values from memory that other processes may write: to an address that a helper uses, and
 * through a buffer on the stack. */
static void follow_shared(struct v *v, const struct jit_helper *h)
{
	if (v->record && is_steered(v, h->id))
		v->f->steered = true;
	if (reads(h->id))
		verify_share(v, &v->s.r[1], 0, UINT64_MAX, copies_shared(v));
	if (h->id == BPF_FUNC_get_current_comm)
		verify_share(v, &v->s.r[1], 0, UINT64_MAX, true);
}

void verify_call_helper(struct v *v, const struct bpf_insn *ins)
{
	const struct jit_helper *h = jit_helper((uint32_t)ins->imm);
	struct jit_fact *f = &v->f->insn[v->pc];
	/* The storage needs no initial value, so the call is written out. See jit_inline(). */
	bool is_task = v->s.r[2].kind == TASK && v->s.r[3].kind == NUMBER && !v->s.r[3].hi;
	struct val r0 = any;
	int32_t map = -1;
	uint32_t scratch;

	if (!h) {
		const char *name = ebpf_helper_name((uint32_t)ins->imm);

		if (v->record)
			verify_refuse(v, "helper %s is not known", name ? name : "");
		return;
	}
	if (v->record && h->regs) {
		v->f->ctx_lost = true;
		v->f->regs_used = true;
	}
	if (h->id == BPF_FUNC_loop) {
		loop(v);
		return;
	}
	if ((h->args[0] == 'm' || h->args[0] == 'M') && v->s.r[1].kind == MAP && !v->s.r[1].null)
		map = (int32_t)v->s.r[1].id;
	if (map >= 0 && v->record && !jit_map_usable(v->env, (uint32_t)map, h->id))
		verify_refuse(v, "map %d is not of the kind that this helper works on", map);
	if (map >= 0 && v->record && h->id == JIT_SCRATCH_GET &&
	    v->env->maps[map].kind != WIRE_MAP_THREAD_ARRAY)
		verify_refuse(v, "map %d has no room for each thread", map);
	if (v->record)
		f->map = map;
	helper_args(v, h, map);
	follow_shared(v, h);
	if (h->result == 'v' && map >= 0) {
		const struct wire_map *m = &v->env->maps[map];

		if (m->kind != WIRE_MAP_TABLES)
			r0 = (struct val){ .kind = VALUE, .id = (uint32_t)map, .null = true };
		if (h->id == BPF_FUNC_map_lookup_elem && m->kind == WIRE_MAP_THREAD_ARRAY &&
		    m->role == MAP_SCRATCH)
			r0.null = false;
		else if (v->s.r[1].kind == MAP && h->id == BPF_FUNC_map_lookup_elem &&
			 m->key_size == 4 && m->kind != WIRE_MAP_TABLES) {
			uint32_t key;

			if ((m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
			     m->kind == WIRE_MAP_AGG_ARRAY) &&
			    verify_known_key(v, &key)) {
				if (key >= m->max_entries)
					r0 = number(0, 0);
				else
					r0.element = key + 1;
				r0.null = false;
			}
		}
		if (h->id == BPF_FUNC_map_lookup_elem && m->kind == WIRE_MAP_THREAD_ARRAY &&
		    m->role == MAP_SCRATCH && m->key_size == 4 && verify_known_key(v, &scratch))
			r0.element = scratch % m->max_entries + 1;
		if (h->id == BPF_FUNC_task_storage_get && is_task) {
			r0.null = false;
			r0.element = 1;
			if (v->record)
				f->there = true;
		}
	}
	if (h->id == BPF_FUNC_get_current_task || h->id == BPF_FUNC_get_current_task_btf)
		r0 = (struct val){ .kind = TASK, .null = true };
	if (h->result == 'b')
		r0 = number(0, 126);
	if (h->result == 'g') {
		const struct val *size = &v->s.r[2], *flags = &v->s.r[3];

		if (v->record && is_const(size) && size->lo && size->lo < OFF_MAX &&
		    is_const(flags) && !flags->lo)
			f->record = (uint32_t)size->lo;

		if (is_const(size) && size->lo < OFF_MAX)
			r0 = (struct val){ .kind = RECORD, .id = (uint32_t)size->lo, .null = true };
	}
	if (r0.null) {
		new_link(v, v->pc + 1);
		r0.link = v->pc + 1;
	}
	clobber_args(v);
	v->s.r[0] = r0;
}
