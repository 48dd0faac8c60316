/* Writes the ways into a program: from a stub in the traced program, and from the tracer.
 *
 * The traced program's stack in a thunk:
 *	[site's rsp - 128, MID]  return address into the stub
 *	                         rax, flags (MID: lahf, seto)
 *	                         r12, r11, r10 (unless the program leaves it alone)
 *	                         the address of its struct wire_thread_entry (unless the
 *	                         program leaves r11 alone, which then holds it)
 * Then, on the same stack or from its struct wire_own down:
 *	[probe stack] the traced program's rsp
 *	struct pt_regs, which also keeps what the program clobbers; or just that, pushed
 *	eBPF stacks: `frame`, 16-byte aligned on the probe stack, is their lowest byte
 *	return address of the first function
 */
#include "compile/jit/code_private.h"
#include "compile/jit/shortcut.h"
#include "data/image.h"

enum { ALWAYS_SAVED = 1 << X86_R10 | 1 << X86_R11 | 1 << X86_R12 | 1 << X86_RSP };
/* Registers that a function in C may change. */
enum {
	AGENT_CLOBBERS = 1 << X86_RAX | 1 << X86_RCX | 1 << X86_RDX | 1 << X86_RSI | 1 << X86_RDI |
			 1 << X86_R8 | 1 << X86_R9
};

enum { HOST_BELOW = WIRE_PROBE_STACK / 2 }; /* the top is for calls of the agent that ask() makes */
enum { SIGNAL_ROOM = 8192 }; /* for the agent, and for signals that come while it runs */

#define OWN_OFF(field) ((int32_t)offsetof(struct wire_own, field))
#define THREAD_OFF(field) ((int32_t)offsetof(struct wire_thread, field))
#define ENTRY_OFF(field) ((int32_t)offsetof(struct wire_thread_entry, field))

/* Offsets in struct pt_regs, by x86 register. */
static const uint8_t in_regs[16] = {
	[X86_R15] = 0,  [X86_R14] = 8,   [X86_R13] = 16,  [X86_R12] = 24,
	[X86_RBP] = 32, [X86_RBX] = 40,  [X86_R11] = 48,  [X86_R10] = 56,
	[X86_R9] = 64,  [X86_R8] = 72,   [X86_RAX] = 80,  [X86_RCX] = 88,
	[X86_RDX] = 96, [X86_RSI] = 104, [X86_RDI] = 112, [X86_RSP] = 152
};
enum { REGS_ORIG_RAX = 120, REGS_RIP = 128, REGS_CS = 136, REGS_FLAGS = 144, REGS_SS = 160 };
enum { SHOWN_RAX = -38 /* -ENOSYS */, CHILD_GETPID = 39 };
enum { USER_CS = 0x33, USER_SS = 0x2b, USER_FLAGS = 0x246 };

static bool is_event(enum wire_stub_kind kind)
{
	return kind >= WIRE_STUB_EVENTS;
}

/* Returns true when the stub is before a system call. */
static bool enters(enum wire_stub_kind kind)
{
	return kind == WIRE_STUB_SYSCALL || (is_event(kind) && !wire_stub_is_behind(kind));
}

/* Returns true when flags, red zone and rax belong to the traced program. */
static bool is_mid(enum wire_stub_kind kind)
{
	return kind >= WIRE_STUB_MID;
}

static void identity(struct jit *j)
{
	struct x86 *b = &j->b;

	switch (j->env->identity) {
	case WIRE_ID_FS32: x86_fs(b, 4, X86_OP_LOAD, THREAD, (int32_t)j->env->id_disp); break;
	case WIRE_ID_FS64: x86_fs(b, 8, X86_OP_LOAD, THREAD, (int32_t)j->env->id_disp); break;
	case WIRE_ID_FSBASE: /* rdfsbase r12 */
		x86_byte(b, 0xf3);
		x86_byte(b, 0x49);
		x86_byte(b, 0x0f);
		x86_byte(b, 0xae);
		x86_byte(b, 0xc0 | (THREAD & 7));
	}
}

/* T0 = the entry at which the thread with key r12 would be. */
static void entry_address(struct jit *j)
{
	const uint64_t entries = j->env->area + offsetof(struct wire_area, entries);
	struct x86 *b = &j->b;

	if (j->env->identity == WIRE_ID_FS32) {
		x86_rr(b, 4, X86_OP_STORE, THREAD, T0);
		x86_alu_imm(b, 4, X86_AND, T0, WIRE_THREAD_HASH - 1);
	} else {
		x86_mov_imm(b, T0, WIRE_THREAD_MIX);
		x86_rr(b, 8, X86_OP_IMUL, T0, THREAD);
		x86_shift_imm(b, 8, X86_SHR, T0, 52);
	}
	x86_shift_imm(b, 4, X86_SHL, T0, WIRE_ENTRY_SHIFT);
	/* All programs share the word in the area, so it is in the cache. */
	if (jit_near(j, entries))
		jit_at(j, 8, 0x03, T0, entries, T0);
	else
		x86_rip(b, 8, 0x03, T0, jit_threads(j));
}

/* T0 = the running thread's entry. */
static void own_entry(struct jit *j)
{
	jit_own(j, T0);
	x86_rm(&j->b, 8, X86_OP_LOAD, T0, T0, OWN_OFF(entry));
}

/* Publishes the generation that the program uses, and repeats this if it changed meanwhile. See
 * WIRE_GEN_RUNS. tmp is lost. */
static void take_gen(struct jit *j, unsigned tmp)
{
	const uint64_t gen = j->env->area + offsetof(struct wire_area, gen);
	struct x86 *b = &j->b;
	uint32_t again = b->n;

	if (!j->facts.gen_used)
		return;
	jit_at(j, 4, X86_OP_LOAD, tmp, gen, tmp);
	x86_rm(b, 8, X86_OP_STORE, tmp, THREAD, THREAD_OFF(gen));
	if (jit_near(j, gen)) {
		jit_at(j, 4, 0x3b, tmp, gen, tmp);
	} else {
		jit_at(j, 4, X86_OP_LOAD, tmp, gen, tmp);
		x86_rm(b, 4, 0x3b, tmp, THREAD, THREAD_OFF(gen));
	}
	x86_jcc(b, X86_NE, again, false);
}

/* thread->cookie = the probe. up: distance from rsp to the return address. tmp is lost. */
static void note_cookie(struct jit *j, unsigned tmp, int32_t up, int32_t behind)
{
	struct x86 *b = &j->b;

	if (!j->facts.cookie_used)
		return;
	x86_rm(b, 8, X86_OP_LOAD, tmp, X86_RSP, up);
	x86_rm(b, 4, X86_OP_LOAD, tmp, tmp, (int32_t)offsetof(struct wire_stub, probe) - behind);
	x86_rm(b, 8, X86_OP_STORE, tmp, THREAD, THREAD_OFF(cookie));
}

/* Runs the program. in_place: writes it out here. */
static void thunk_run(struct jit *j, bool in_place)
{
	struct x86 *b = &j->b;

	if (j->uses_r10)
		x86_rm(b, 8, X86_OP_LEA, X86_RBP, X86_RSP, (int32_t)j->data);
	if (j->facts.budget_used)
		x86_store_imm(b, 8, THREAD, THREAD_OFF(budget), JIT_BUDGET);
	if (in_place)
		jit_body(j);
	else
		x86_call(b, j->fn_at[0]);
}

void jit_firing_begins(struct jit *j)
{
	x86_rm(&j->b, 8, X86_OP_STORE, X86_RSP, T0, ENTRY_OFF(rsp));
	take_gen(j, T1);
}

void jit_firing_ends(struct jit *j)
{
	if (j->facts.gen_used)
		x86_store_imm(&j->b, 8, THREAD, THREAD_OFF(gen), 0);
	x86_store_imm(&j->b, 8, T0, ENTRY_OFF(rsp), (int32_t)WIRE_IDLE);
}

/* Fills the struct pt_regs at rsp + data, except rdi, which is there already. in: T1 = rsp of the
 * traced program's side. up: distance from T1 to the return address. */
static void fill_regs(struct jit *j, enum wire_stub_kind kind, uint32_t keep, int32_t up)
{
	struct x86 *b = &j->b;
	int32_t regs = (int32_t)j->data, site = up + 8 + (is_mid(kind) ? 128 : 0);
	int32_t behind =
		sizeof(struct wire_stub) + WIRE_STUB_CALL + (is_mid(kind) ? WIRE_STUB_LEA : 0);
	bool after = kind == WIRE_STUB_RETURN || kind == WIRE_STUB_TAIL;
	uint32_t words = is_event(kind) ? (1u << JIT_CTX / 8) - 1 : j->facts.ctx_words;

	for (unsigned r = 0; r < 16; r++) {
		bool show = words >> in_regs[r] / 8 & 1;
		int32_t to = regs + in_regs[r];

		if (r == X86_RSP) {
			if (!show)
				continue;
			x86_rm(b, 8, X86_OP_LEA, T0, T1, site + (after ? 8 : 0));
		} else if (r == X86_RAX && enters(kind)) {
			if (show)
				x86_store_imm(b, 8, X86_RSP, to, SHOWN_RAX);
			continue;
		} else if (r == X86_R10 || r == X86_R11 || r == X86_R12 ||
			   (r == X86_RAX && is_mid(kind))) {
			if (!show)
				continue;
			x86_rm(b, 8, X86_OP_LOAD, T0, T1,
			       r == X86_R10   ? 8
			       : r == X86_R11 ? 16
			       : r == X86_R12 ? 24
					      : 40);
		} else {
			if (r != X86_RDI && (show || keep >> r & 1))
				x86_rm(b, 8, X86_OP_STORE, r, X86_RSP, to);
			continue;
		}
		x86_rm(b, 8, X86_OP_STORE, T0, X86_RSP, to);
	}
	if (words >> REGS_RIP / 8 & 1) {
		if (after) {
			x86_rm(b, 8, X86_OP_LOAD, T0, T1, site);
		} else {
			x86_rm(b, 8, X86_OP_LOAD, T0, T1, up);
			x86_rm(b, 8, X86_OP_LOAD, T0, T0, -behind);
		}
		x86_rm(b, 8, X86_OP_STORE, T0, X86_RSP, regs + REGS_RIP);
	}
	if (words >> REGS_ORIG_RAX / 8 & 1) {
		if (enters(kind)) {
			x86_rm(b, 4, X86_OP_LOAD, T0, T1, 40); /* the kernel uses the lower half */
			x86_rm(b, 8, X86_OP_STORE, T0, X86_RSP, regs + REGS_ORIG_RAX);
		} else if (wire_stub_is_behind(kind)) {
			x86_rm(b, 4, X86_OP_LOAD, T0, THREAD, THREAD_OFF(number));
			x86_rm(b, 8, X86_OP_STORE, T0, X86_RSP, regs + REGS_ORIG_RAX);
		} else {
			x86_store_imm(b, 8, X86_RSP, regs + REGS_ORIG_RAX, -1);
		}
	}
	if (words >> REGS_CS / 8 & 1)
		x86_store_imm(b, 8, X86_RSP, regs + REGS_CS, USER_CS);
	if (words >> REGS_FLAGS / 8 & 1)
		x86_store_imm(b, 8, X86_RSP, regs + REGS_FLAGS, USER_FLAGS);
	if (words >> REGS_SS / 8 & 1)
		x86_store_imm(b, 8, X86_RSP, regs + REGS_SS, USER_SS);
}

/* Switches rsp to the thread's probe stack. in: T1 = rsp. out: T0 = the struct wire_own. A handler
 * on the thread's signal stack stays there if it has room. If it left, the kernel would take the
 * signal stack for unused, and put the next signal's frame over the handler's. */
static void choose_stack(struct jit *j)
{
	int32_t room = (int32_t)(j->data + JIT_CTX + j->facts.fns[0].depth * JIT_NATIVE_FRAME) +
		       SIGNAL_ROOM;
	struct x86 *b = &j->b;
	uint32_t above, below, stay;

	jit_own(j, T0);
	x86_rm(b, 8, 0x3b, X86_RSP, T0, OWN_OFF(alt_hi));
	above = x86_jcc_over(b, X86_AE);
	x86_rm(b, 8, X86_OP_LEA, T1, X86_RSP, -room);
	x86_rm(b, 8, 0x3b, T1, T0, OWN_OFF(alt_lo));
	x86_mov_rr(b, T1, X86_RSP); /* keeps the flags */
	below = x86_jcc_over(b, X86_B);
	x86_alu_imm(b, 8, X86_AND, X86_RSP, -16);
	stay = x86_jmp_over(b);
	x86_land(b, above);
	x86_land(b, below);
	x86_mov_rr(b, X86_RSP, T0);
	x86_land(b, stay);
}

/* Makes the wide jumps of a list jump to here. */
static void land_all(struct x86 *b, const uint32_t *jumps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		code_land(b, jumps[i]);
}

static int32_t call_at(int32_t k)
{
	return THREAD_OFF(calls) + k * (int32_t)sizeof(struct wire_call);
}

/* thread->number = the number of the call that returns. Returns a wide jump, taken when the call is
 * not known. Clobbers T0, T1. */
static uint32_t find_number(struct jit *j, int32_t up, int32_t site, int32_t behind)
{
	struct x86 *b = &j->b;
	uint32_t hits[WIRE_CALLS], fixed, keep, lost;
	int32_t kind = (int32_t)offsetof(struct wire_stub, kind) - behind;

	x86_rm(b, 8, X86_OP_LOAD, T0, X86_RSP, up);
	x86_rm(b, 4, X86_OP_LOAD, T0, T0, kind);
	x86_shift_imm(b, 4, X86_SHR, T0, WIRE_STUB_CALL_SHIFT);
	x86_alu_imm(b, 4, X86_SUB, T0, 1);
	x86_rm(b, 4, X86_OP_STORE, T0, THREAD, THREAD_OFF(number));
	x86_alu_imm(b, 4, X86_CMP, T0, WIRE_STUB_CALL_KEEP - 1);
	x86_jcc(b, X86_B, b->n, true);
	fixed = b->n;
	x86_rm(b, 8, X86_OP_LEA, T1, X86_RSP, site);
	for (int32_t k = 0; k < WIRE_CALLS; k++) {
		x86_rm(b, 8, X86_OP_LEA, T0, THREAD, call_at(k));
		x86_rm(b, 8, 0x3b, T1, T0, 0);
		x86_jcc(b, X86_E, b->n, true);
		hits[k] = b->n;
	}
	x86_jmp(b, b->n, true);
	lost = b->n;
	land_all(b, hits, WIRE_CALLS);
	x86_rm(b, 4, X86_OP_LOAD, T1, T0, offsetof(struct wire_call, number));
	x86_rm(b, 4, X86_OP_STORE, T1, THREAD, THREAD_OFF(number));
	x86_rm(b, 8, X86_OP_LOAD, T1, X86_RSP, up);
	x86_rm(b, 4, X86_OP_LOAD, T1, T1, kind);
	x86_shift_imm(b, 4, X86_SHR, T1, WIRE_STUB_CALL_SHIFT);
	keep = x86_jcc_over(b, X86_NE);
	x86_store_imm(b, 8, T0, offsetof(struct wire_call, rsp), 0);
	x86_land(b, keep);
	code_land(b, fixed);
	return lost;
}

/* Records the number of a system call in a free struct wire_call. Writes its rsp, which takes it,
 * before its number, so that a signal handler's calls in between take another. They free it
 * again. */
static void note_number(struct jit *j, int32_t site)
{
	struct x86 *b = &j->b;
	uint32_t hits[2 * WIRE_CALLS];

	x86_rm(b, 8, X86_OP_LEA, T1, X86_RSP, site);
	for (int32_t k = 0; k < WIRE_CALLS; k++) {
		x86_rm(b, 8, X86_OP_LEA, T0, THREAD, call_at(k));
		x86_rm(b, 8, 0x3b, T1, T0, 0);
		x86_jcc(b, X86_E, b->n, true);
		hits[2 * k] = b->n;
		x86_alu_mem_imm(b, 8, X86_CMP, T0, 0, 0);
		x86_jcc(b, X86_E, b->n, true);
		hits[2 * k + 1] = b->n;
	}
	/* All are taken, by eight nested handlers or by calls that longjmp() left. The last call's
	 * return is lost. */
	x86_alu_mem_imm(b, 8, X86_ADD, THREAD, THREAD_OFF(skipped_nested), 1);
	land_all(b, hits, 2 * WIRE_CALLS);
	x86_rm(b, 8, X86_OP_STORE, T1, T0, offsetof(struct wire_call, rsp));
	x86_rm(b, 4, X86_OP_LOAD, T1, X86_RSP, 32);
	x86_rm(b, 8, X86_OP_STORE, T1, T0, offsetof(struct wire_call, number));
}

/* thread->vforked = whether this is a child that runs on the thread's memory. Compares process ids;
 * the thread itself waits meanwhile. If the agent may make no system calls, the child is taken for
 * the thread. */
static void look_for_child(struct jit *j)
{
	const uint64_t quiet = j->env->private + WIRE_KEPT + offsetof(struct wire_kept, quiet);
	struct x86 *b = &j->b;
	uint32_t parent, silent;

	x86_store_imm(b, 4, THREAD, THREAD_OFF(vforked), 0);
	x86_alu_mem_imm(b, 8, X86_CMP, X86_RSP, 32, 0);
	parent = x86_jcc_over(b, X86_NE);
	jit_at(j, 4, X86_OP_LOAD, T1, quiet, T1);
	x86_rr(b, 4, X86_OP_TEST, T1, T1);
	silent = x86_jcc_over(b, X86_NE);
	x86_push(b, X86_RCX);
	x86_mov_imm(b, X86_RAX, CHILD_GETPID);
	x86_byte(b, 0x0f); /* syscall */
	x86_byte(b, 0x05);
	x86_pop(b, X86_RCX);
	x86_rm(b, 4, X86_OP_LOAD, T1, THREAD, THREAD_OFF(pid));
	x86_rr(b, 4, x86_alu_op(X86_SUB), X86_RAX, T1);
	x86_rm(b, 4, X86_OP_STORE, T1, THREAD, THREAD_OFF(vforked));
	x86_land(b, silent);
	x86_land(b, parent);
}

/* rdi = the context that the agent makes of the registers at rdi. Returns a wide jump, taken when
 * there is no such event. T1 as in fill_regs(). */
static uint32_t make_context(struct jit *j, int32_t up, int32_t behind)
{
	struct x86 *b = &j->b;

	x86_rm(b, 8, X86_OP_LOAD, X86_RSI, T1, up);
	x86_alu_imm(b, 8, X86_SUB, X86_RSI, behind);
	x86_mov_rr(b, X86_RDX, THREAD);
	x86_call(b, jit_agent(j, WIRE_AGENT_event));
	x86_mov_rr(b, X86_RDI, X86_RAX);
	x86_rr(b, 8, X86_OP_TEST, X86_RDI, X86_RDI);
	x86_jcc(b, X86_E, b->n, true);
	return b->n;
}

/* Gives back the registers that every thunk saves, and returns to the stub. */
static void thunk_leave(struct jit *j, bool lean, bool mid)
{
	struct x86 *b = &j->b;

	if (!lean)
		x86_pop(b, X86_R10);
	x86_pop(b, X86_R11);
	x86_pop(b, X86_R12);
	if (mid) {
		x86_pop(b, X86_RAX);
		x86_byte(b, 0x04); /* add al, 127: overflows when al is 1 */
		x86_byte(b, 0x7f);
		x86_byte(b, 0x9e); /* sahf */
		x86_pop(b, X86_RAX);
	}
	x86_ret(b);
}

/* Tries out whether the shortcut writes T1. */
static bool writes_t1(struct jit *j, const struct shortcut_place *p)
{
	const uint32_t n = j->b.n;
	struct shortcut_jumps jumps;
	bool writes = jit_shortcut(j, p, &jumps);

	j->b.n = n;
	return writes;
}

/* Returns to the stub at once while all guards are 0. The flags are free. */
static void look_at_guards(struct jit *j)
{
	enum { MOST = 4 };
	const struct jit_env *env = j->env;
	uint32_t awake[MOST];

	if (env->nguards > MOST)
		return;
	for (uint32_t i = 0; i < env->nguards; i++)
		if ((env->guards[i].size != 4 && env->guards[i].size != 8) ||
		    !jit_near(j, env->globals + env->guards[i].offset))
			return;
	for (uint32_t i = 0; i < env->nguards; i++) {
		x86_rip_alu_imm(&j->b, env->guards[i].size, X86_CMP,
				(int64_t)(env->globals + env->guards[i].offset - env->code), 0);
		awake[i] = x86_jcc_over(&j->b, X86_NE);
	}
	if (env->nguards)
		x86_ret(&j->b);
	for (uint32_t i = 0; i < env->nguards; i++)
		x86_land(&j->b, awake[i]);
}

void jit_thunk(struct jit *j, enum wire_stub_kind kind)
{
	struct x86 *b = &j->b;
	bool mid = is_mid(kind), call = kind >= WIRE_STUB_KINDS;
	bool regs = j->facts.ctx_used || is_event(kind);
	bool runs = kind != WIRE_STUB_SYSNOTE && kind != WIRE_STUB_SYSFORK;
	bool in_place = j->short_main && (kind == WIRE_STUB_ENTRY || kind == WIRE_STUB_RETURN);
	uint32_t keep = (j->clobbered | (j->uses_r10 ? 1u << X86_RBP : 0)) &
			~(uint32_t)ALWAYS_SAVED;
	bool bare = !regs && !j->probe_stack;
	struct shortcut_place place = { .rax = kind == WIRE_STUB_ENTRY ||
					       kind == WIRE_STUB_RETURN || kind == WIRE_STUB_TAIL };
	bool cut = runs && kind < WIRE_STUB_KINDS && jit_has_shortcut(j, &place);
	bool lean = !mid && bare && !(j->clobbered >> T1 & 1) && !cut; /* T1 is not used */
	/* T0 holds the entry throughout, and rax is free once it is saved. */
	bool held = bare && !j->facts.regs_used && !wire_stub_is_behind(kind) &&
		    !(j->clobbered >> T0 & 1) && j->clobbered >> X86_RAX & 1;
	bool marks = j->facts.gen_used || j->facts.cookie_used;
	int32_t entry = runs && !held ? 8 : 0; /* bytes of the entry's address on the stack */
	/* up: from rsp to the return address. site: from rsp to the traced program's own stack
	 * pointer. */
	int32_t up = entry + (lean ? 16 : 24) + (mid ? 16 : 0);
	int32_t site = up + 8 + (mid ? 128 : 0);
	int32_t behind = sizeof(struct wire_stub) + WIRE_STUB_CALL + (mid ? WIRE_STUB_LEA : 0);
	uint32_t short_end = 0, first_cold = j->ncold, found, go = 0, zero = 0, miss, nested = 0,
		 skip1, used, pad, lost = 0, child = 0, none = 0, free;
	struct shortcut_jumps jumps;
	/* r10 is saved behind the shortcut, because the shortcut leaves it alone. */
	bool later = cut && !writes_t1(j, &place);
	int64_t skip_at;

	if (in_place && !j->rax_used && !(held && marks))
		keep &= ~(1u << X86_RAX);
	if (regs)
		keep |= 1u << X86_RDI;
	if (is_event(kind))
		keep |= AGENT_CLOBBERS;
	if (!mid && runs)
		look_at_guards(j);
	if (mid) {
		x86_push(b, X86_RAX);
		x86_byte(b, 0x9f); /* lahf */
		x86_byte(b, 0x0f); /* seto al */
		x86_byte(b, 0x90);
		x86_byte(b, 0xc0);
		x86_push(b, X86_RAX);
		keep &= ~(1u << X86_RAX);
	}
	x86_push(b, X86_R12);
	x86_push(b, X86_R11);
	if (!lean && !later)
		x86_push(b, X86_R10);
	identity(j);
	/* Key 0 matches any free entry. Thunks that run a program notice this by the entry's
	 * `rsp`. */
	if (!runs) {
		x86_rr(b, 8, X86_OP_TEST, THREAD, THREAD);
		x86_jcc(b, X86_E, b->n, true);
		zero = b->n;
	}
	entry_address(j);
	x86_rm(b, 8, 0x3b, THREAD, T0, 0);
	x86_jcc(b, X86_NE, b->n, true);
	miss = b->n;
	x86_rm(b, 8, X86_OP_LOAD, THREAD, T0, ENTRY_OFF(thread));
	found = b->n;
	if (!runs) {
		if (kind == WIRE_STUB_SYSNOTE)
			note_number(j, site);
		else
			look_for_child(j);
		goto out;
	}
	/* A signal that comes between this test and the store below has ended its own firing before
	 * the store. */
	x86_alu_mem_imm(b, 8, X86_CMP, T0, ENTRY_OFF(rsp), 0);
	x86_jcc(b, X86_NS, b->n, true);
	nested = b->n;
	go = b->n;
	if (call) {
		x86_alu_mem_imm(b, 4, X86_CMP, THREAD, THREAD_OFF(vforked), 0);
		x86_jcc(b, X86_NE, b->n, true);
		child = b->n;
	}
	if (cut) {
		bool after = kind == WIRE_STUB_RETURN || kind == WIRE_STUB_TAIL;

		place.rsp = site - entry + (after ? 8 : 0) - (later ? 8 : 0);
		(void)jit_shortcut(j, &place, &jumps);
		/* The end stands here, too, so that short firings touch fewer lines of code. */
		land_all(b, jumps.outs, jumps.nouts);
		short_end = b->n;
		thunk_leave(j, lean || later, mid);
		land_all(b, jumps.fails, jumps.nfails);
		if (jumps.nfails)
			x86_pop(b, X86_RCX);
		land_all(b, jumps.runs, jumps.nruns);
		if (later)
			x86_push(b, X86_R10);
	}
	x86_rm(b, 8, X86_OP_STORE, X86_RSP, T0, ENTRY_OFF(rsp));
	if (!held)
		x86_push(b, T0);
	if (wire_stub_is_behind(kind))
		lost = find_number(j, up, site, behind);
	if (!held) {
		take_gen(j, T0);
		note_cookie(j, T0, up, behind);
	}
	used = 0;
	if (regs || j->probe_stack)
		x86_mov_rr(b, T1, X86_RSP);
	if (j->probe_stack) {
		choose_stack(j);
		x86_push(b, T1);
		used += 8;
	}
	if (!regs) {
		for (unsigned r = 0; r < 16; r++) {
			if (keep >> r & 1) {
				x86_push(b, r);
				used += 8;
			}
		}
	} else {
		used += JIT_CTX;
	}
	pad = j->probe_stack || regs || j->facts.frames ? -used & 8 : 0;
	if (j->data + pad + (regs ? JIT_CTX : 0))
		x86_alu_imm(b, 8, X86_SUB, X86_RSP,
			    (int32_t)(j->data + (regs ? JIT_CTX : 0) + pad));
	if (used + pad + j->data > j->native)
		j->native = used + pad + j->data;
	if (held) {
		note_cookie(j, X86_RAX, up + (int32_t)(used + pad + j->data), behind);
		take_gen(j, X86_RAX);
	}
	if (j->facts.regs_used && !j->probe_stack)
		jit_own(j, T0);
	if (regs) {
		x86_rm(b, 8, X86_OP_STORE, X86_RDI, X86_RSP, (int32_t)j->data + in_regs[X86_RDI]);
		x86_rm(b, 8, X86_OP_LEA, X86_RDI, X86_RSP, (int32_t)j->data);
	}
	if (j->probe_stack || j->facts.regs_used) {
		if (regs)
			x86_rm(b, 8, X86_OP_STORE, X86_RDI, T0, OWN_OFF(regs));
		else
			x86_store_imm(b, 8, T0, OWN_OFF(regs), 0);
	}
	if (j->probe_stack)
		x86_rm(b, 8, X86_OP_STORE, X86_RSP, T0, OWN_OFF(frame));
	if (regs)
		fill_regs(j, kind, keep, up);
	if (is_event(kind))
		none = make_context(j, up, behind);
	thunk_run(j, in_place);
	if (none)
		code_land(b, none);
	if (regs) {
		for (unsigned r = 0; r < 16; r++)
			if (keep >> r & 1)
				x86_rm(b, 8, X86_OP_LOAD, r, X86_RSP,
				       (int32_t)j->data + in_regs[r]);
		x86_alu_imm(b, 8, X86_ADD, X86_RSP, (int32_t)(j->data + JIT_CTX + pad));
	} else {
		if (j->data + pad)
			x86_alu_imm(b, 8, X86_ADD, X86_RSP, (int32_t)(j->data + pad));
		for (unsigned r = 16; r--;)
			if (keep >> r & 1)
				x86_pop(b, r);
	}
	if (j->probe_stack)
		x86_pop(b, X86_RSP);
	if (lost)
		code_land(b, lost);
	if (!held)
		x86_pop(b, T0);
	jit_firing_ends(j);
	if (j->facts.signals_used)
		x86_call(b, j->signals);
	if (child)
		code_land(b, child);
out:
	skip_at = later ? short_end : b->n;
	thunk_leave(j, lean, mid);

	free = b->n;
	if (zero)
		code_land(b, zero);
	code_land(b, miss);
	x86_call(b, j->find);
	x86_rr(b, 8, X86_OP_TEST, THREAD, THREAD);
	x86_jcc(b, X86_NE, found, false);
	skip1 = b->n;
	x86_jmp(b, skip_at, false);
	if (!runs)
		return;
	code_land(b, nested);
	x86_rr(b, 8, X86_OP_TEST, THREAD, THREAD); /* a free entry matches key 0 */
	x86_jcc(b, X86_E, free, false);
	x86_rm(b, 8, X86_OP_LEA, T0, X86_RSP, site - entry - (later ? 8 : 0));
	x86_call(b, j->nested);
	x86_rr(b, 8, X86_OP_TEST, T0, T0);
	x86_jcc(b, X86_NE, go, false);
	x86_jmp(b, skip1, false);
	jit_cold_paths(j, first_cold);
}

/* Writes a call of the agent that clobbers only T0 and `result`. rdi = the thread or the key in its
 * place, rsi = arg1 if it is a register. ring_reserve: the arguments stay as they are. thread,
 * nested: T0 = the thread's entry, unless the result is 0. */
static void ask(struct jit *j, enum wire_agent_entry entry, int arg1, unsigned result)
{
	static const uint8_t all[] = { X86_RAX, X86_RCX, X86_RDX, X86_RSI, X86_RDI,
				       X86_R8,  X86_R9,  X86_R10, X86_RBP };
	/* Keep all registers, so that a slow clock does not make the program's registers count as
	 * clobbered. */
	const uint8_t *kept = all + (result == X86_RAX);
	uint32_t n = ARRAY_SIZE(all) - (result == X86_RAX);
	struct x86 *b = &j->b;
	uint32_t none;

	for (uint32_t i = 0; i < n; i++)
		x86_push(b, kept[i]);
	x86_mov_rr(b, X86_RBP, X86_RSP);
	/* The agent's clock may need more stack than the traced program has. */
	if (entry == WIRE_AGENT_ktime && !j->probe_stack) {
		jit_own(j, T0);
		x86_mov_rr(b, X86_RSP, T0);
	}
	x86_alu_imm(b, 8, X86_AND, X86_RSP, -16);
	if (entry != WIRE_AGENT_ring_reserve)
		x86_mov_rr(b, X86_RDI, THREAD);
	if (arg1 >= 0)
		x86_mov_rr(b, X86_RSI, (unsigned)arg1);
	x86_mov_rr(b, X86_R9, THREAD);
	x86_call(b, jit_agent(j, entry));
	x86_mov_rr(b, X86_RSP, X86_RBP);
	x86_mov_rr(b, result, X86_RAX);
	for (uint32_t i = n; i--;)
		x86_pop(b, kept[i]);
	if (entry == WIRE_AGENT_thread || entry == WIRE_AGENT_nested) {
		x86_rr(b, 8, X86_OP_TEST, result, result);
		none = x86_jcc_over(b, X86_E);
		own_entry(j);
		x86_land(b, none);
	}
	x86_ret(b);
}

void jit_thunk_pieces(struct jit *j)
{
	x86_align(&j->b, 16, 0xcc);
	j->find = j->b.n;
	ask(j, WIRE_AGENT_thread, -1, THREAD);
	j->nested = j->b.n;
	ask(j, WIRE_AGENT_nested, T0, T0);
	j->clock = j->b.n;
	if (j->facts.clock_used)
		ask(j, WIRE_AGENT_ktime, -1, X86_RAX);
	j->reserve = j->b.n;
	if (j->facts.reserve_used)
		ask(j, WIRE_AGENT_ring_reserve, -1, X86_RAX);
	j->cpu = j->b.n;
	if (j->facts.cpu_used && !j->env->rdpid)
		ask(j, WIRE_AGENT_cpu, -1, X86_RAX);
	j->signals = j->b.n;
	if (j->facts.signals_used)
		ask(j, WIRE_AGENT_signals, -1, T0);
	x86_align(&j->b, 8, 0xcc);
	j->zeros = j->b.n;
	for (uint32_t i = 0; j->facts.ctx_used && i < JIT_CTX; i++)
		x86_byte(&j->b, 0);
}

/* Writes the tracer's way in. The program runs on the slot's probe stack, because it must not write
 * the tracer's own stack or see its addresses. */
void jit_host(struct jit *j)
{
	static const uint8_t kept[] = { X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15 };
	struct x86 *b = &j->b;
	uint32_t given;

	for (uint32_t i = 0; i < ARRAY_SIZE(kept); i++)
		x86_push(b, kept[i]);
	x86_mov_rr(b, THREAD, X86_RDI);
	x86_mov_rr(b, T0, X86_RSP);
	jit_own(j, T1);
	x86_mov_rr(b, X86_RSP, T1);
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, HOST_BELOW);
	x86_push(b, T0);
	x86_alu_imm(b, 8, X86_SUB, X86_RSP, (int32_t)j->data + 8);
	own_entry(j);
	x86_rm(b, 8, X86_OP_STORE, X86_RSP, T0, ENTRY_OFF(rsp));
	take_gen(j, T0);
	x86_rm(b, 8, X86_OP_STORE, X86_RDX, THREAD, THREAD_OFF(cookie));
	if (j->facts.ctx_used) {
		x86_rr(b, 8, X86_OP_TEST, X86_RSI, X86_RSI);
		given = x86_jcc_over(b, X86_NE);
		x86_rip(b, 8, X86_OP_LEA, X86_RSI, j->zeros);
		x86_land(b, given);
	}
	jit_own(j, T0);
	x86_rm(b, 8, X86_OP_STORE, X86_RSI, T0, OWN_OFF(regs));
	x86_rm(b, 8, X86_OP_STORE, X86_RSP, T0, OWN_OFF(frame));
	x86_mov_rr(b, X86_RDI, X86_RSI);
	thunk_run(j, false);
	own_entry(j);
	jit_firing_ends(j);
	x86_alu_imm(b, 8, X86_ADD, X86_RSP, (int32_t)j->data + 8);
	x86_pop(b, X86_RSP);
	for (uint32_t i = ARRAY_SIZE(kept); i--;)
		x86_pop(b, kept[i]);
	x86_ret(b);
}
