/* Writes stacks and addresses as text. */
#include <stdarg.h>

#include "base/path.h"
#include "program/runtime/languages.h"
#include "program/unwind/unwind.h"
#include "render/render.h"

bool address_place(struct sink *s, uint32_t pid, uint64_t addr, struct place *ret)
{
	*ret = (struct place){ 0 };
	if (!s->symbols)
		return false;
	return pid ? symbols_user(s->symbols, (pid_t)pid, s->time, addr, ret)
		   : symbols_kernel(s->symbols, addr, ret);
}

static void place_text(struct sink *s, bool user, const struct place *p, uint64_t addr,
		       enum address_form form, char *buf, uint32_t n)
{
	bool known = p->module || p->function;

	if (form == ADDRESS_MODULE && p->module)
		snprintf(buf, n, "%s", p->module);
	else if (form == ADDRESS_MODULE || !known)
		snprintf(buf, n, "0x%llx", (unsigned long long)addr);
	else if (user && p->module && s->options && opt_on(s->options, OPT_NORESOLVE))
		snprintf(buf, n, "%s:0x%llx", p->module,
			 (unsigned long long)(addr - p->module_base));
	else
		place_format(p, addr, form == ADDRESS_OFFSET, buf, n);
}

void address_text(struct sink *s, uint32_t pid, uint64_t addr, enum address_form form, char *buf,
		  uint32_t n)
{
	struct place p;

	address_place(s, pid, addr, &p);
	place_text(s, pid != 0, &p, addr, form, buf, n);
}

bool field_address_text(struct sink *s, const struct field *f, const uint8_t *data, char *buf,
			uint32_t n)
{
	uint64_t addr;
	uint32_t pid;
	enum address_form form = ADDRESS_SYMBOL;

	if (!field_address(f, data, &addr, &pid))
		return false;
	if (f->kind == FIELD_MOD || f->kind == FIELD_UMOD)
		form = ADDRESS_MODULE;
	else if (f->kind == FIELD_UADDR)
		form = ADDRESS_OFFSET;
	/* A user address of process 0 belongs to a process that is not known. It is not the
	 * kernel's. */
	if (!pid && (f->kind == FIELD_USYM || f->kind == FIELD_UMOD || f->kind == FIELD_UADDR))
		snprintf(buf, n, "0x%llx", (unsigned long long)addr);
	else
		address_text(s, pid, addr, form, buf, n);
	return true;
}

/* Functions that run the tracer's programs. They are on top of every kernel stack that a program
 * takes. */
static bool is_machinery(const char *function)
{
	static const char *const prefixes[] = {
		"bpf_trace_run",         "bpf_prog_test_run",    "__bpf_prog_test_run",
		"bpf_test_run",          "__bpf_trace_",         "__traceiter_",
		"bpf_get_stack",         "__bpf_get_stack",      "perf_event_overflow",
		"__perf_event_overflow", "bpf_overflow_handler", "perf_swevent_",
		"perf_tp_event",         "perf_trace_",          "perf_ftrace_",
		"trace_call_bpf",        "bpf_trampoline_",      "__bpf_prog_",
		"___bpf_prog_run",       "uprobe_prog_run",      "__uprobe_perf_func",
		"uprobe_multi_link_",    "bpf_dispatcher_",
	};

	/* bpf_prog_0123456789abcdef_name, and not bpf_prog_load */
	if (!strncmp(function, "bpf_prog_", 9) && strspn(function + 9, "0123456789abcdef") >= 16)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(function, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Returns the number of leading frames of the tracer. Programs may have no symbol, so frames
 * without a name count together with the tracer's frames below them. */
static uint32_t machinery(struct sink *s, const uint64_t *pcs, uint32_t n)
{
	uint32_t trim = 0;

	for (uint32_t i = 0; i < n && i < 16; i++) {
		struct place p;

		if (!address_place(s, 0, pcs[i], &p) || !p.function)
			continue;
		if (!is_machinery(p.function))
			break;
		trim = i + 1;
	}
	return trim;
}

static bool is_language(uint64_t word)
{
	return word & WIRE_LANGUAGE_FRAME;
}

struct loops {
	struct languages *languages;
	pid_t pid;
};

static bool is_loop(const void *arg, uint64_t addr)
{
	const struct loops *l = arg;

	return languages_is_loop(l->languages, l->pid, addr);
}

static bool is_part(const void *arg, uint64_t addr)
{
	const struct loops *l = arg;

	return languages_is_part(l->languages, l->pid, addr);
}

/* Moves the words of an interpreted language's frames from behind the native ones to the places
 * of the interpreter's loop. whole: the native frames go to the thread's first one. Returns the
 * number of frames. */
static uint32_t place_language(struct sink *s, uint32_t pid, uint64_t *pcs, uint32_t n, bool whole)
{
	struct loops loops = { s->languages, (pid_t)pid };
	struct runtime_stack st = {
		.pcs = pcs, .whole = whole, .is_loop = is_loop, .is_part = is_part, .arg = &loops
	};
	struct runtime_frame frames[STACK_MAX];
	runtime_merged_vec merged = { 0 };
	uint64_t words[STACK_MAX];

	while (st.n < n && !is_language(pcs[st.n]))
		st.n++;
	if (st.n == n)
		return n;
	if (s->languages && languages_in_place(s->languages, (pid_t)pid, pcs[st.n]))
		return n;
	if (!s->languages)
		return st.n;
	for (uint32_t i = n - 1; i-- > st.n;)
		pcs[i] = languages_called(s->languages, (pid_t)pid, pcs[i], pcs[i + 1]);
	for (uint32_t i = st.n; i < n; i++)
		frames[st.nframes++] =
			(struct runtime_frame){ .entry = pcs[i] & WIRE_LANGUAGE_ENTRY };
	st.frames = frames;
	runtime_merge(&st, false, &merged);
	for (uint32_t i = 0; i < merged.n; i++)
		words[i] = pcs[merged.v[i].index + (merged.v[i].language ? st.n : 0)];
	n = merged.n;
	memcpy(pcs, words, n * sizeof(*pcs));
	vec_fini(&merged);
	return n;
}

/* 1 + enum wire_unwind_end of the walk that made the stack; 0 not known. */
static uint32_t stack_end(struct sink *s, const struct field *f, const uint8_t *data)
{
	struct field_stack st;

	if (!field_stack(f, data, &st) || st.error)
		return 0;
	return st.id >= 0 && s->stack_end ? s->stack_end(s->stack_arg, st.id) : st.end;
}

uint32_t stack_frames(struct sink *s, const struct field *f, const uint8_t *data, uint64_t *ret,
		      uint32_t max, uint32_t *ret_pid)
{
	struct field_stack st;
	uint32_t n = 0, trim;

	*ret_pid = 0;
	if (!field_stack(f, data, &st))
		return 0;
	*ret_pid = st.user ? st.pid : 0;
	if (st.error)
		return 0;
	if (st.pcs) {
		n = st.n < max ? st.n : max;
		memcpy(ret, st.pcs, n * sizeof(*ret));
	} else if (s->stack) {
		n = s->stack(s->stack_arg, st.id, ret, max);
	}
	/* A 0 among the frames is a call through NULL. */
	while (n && !ret[n - 1])
		n--;
	if (st.user)
		return place_language(s, st.pid, ret, n,
				      stack_end(s, f, data) == 1 + WIRE_UNWIND_END_ROOT);
	trim = machinery(s, ret, n);
	memmove(ret, ret + trim, (n - trim) * sizeof(*ret));
	return n - trim;
}

/* Why the walk gave up behind `pc`; false for a stack that is complete, or as deep as was asked
 * for. */
static bool end_text(struct sink *s, uint32_t end, uint32_t pid, uint64_t pc, char *buf, uint32_t n)
{
	const char *path;

	switch ((int)(end - 1)) {
	case WIRE_UNWIND_END_NO_TABLE:
		path = pid && s->symbols ? symbols_user_path(s->symbols, (pid_t)pid, s->time, pc)
					 : NULL;
		if (path && *path)
			snprintf(buf, n, "no unwind table for %s", path);
		else if (path)
			snprintf(buf, n, "no unwind table for code made at run time");
		else
			snprintf(buf, n, "0x%llx is in no mapping", (unsigned long long)pc);
		return true;
	case WIRE_UNWIND_END_UNREADABLE:
	case WIRE_UNWIND_END_BAD:
	case WIRE_UNWIND_END_NOT_LOADED:
		snprintf(buf, n, "%s", unwind_end_text((enum wire_unwind_end)(end - 1)));
		return true;
	}
	return false;
}

/* Returns true for the signal trampoline. Its return address was interrupted, not called. Handles
 * those of C libraries and Go's, which differs by version. */
static bool is_signal_frame(const struct place *p)
{
	static const char *const names[] = { "__restore_rt", "__restore", "runtime.sigreturn",
					     "runtime.sigreturn__sigaction" };

	for (size_t i = 0; i < ARRAY_SIZE(names) && p->function && !p->offset; i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(p->function, names[i], n) &&
		    (!p->function[n] || !strcmp(p->function + n, ".abi0")))
			return true;
	}
	return false;
}

/* Returns true for the function of glibc to which makecontext() lets coroutines return. */
static bool is_context_start(const struct place *p)
{
	return p->function && !p->offset && !strcmp(p->function, "__start_context");
}

/* Returns the address by which a return address is named. A call may be the last instruction of a
 * function, so this is the call's address. A handler was not called: it returns to the first byte
 * of the trampoline, at a multiple of 16 or, in musl, behind a byte that belongs to no function.
 * Coroutines return in the same way to the function that makecontext() chose. */
static bool return_place(struct sink *s, uint32_t pid, uint64_t pc, struct place *ret)
{
	struct place at;
	bool known = address_place(s, pid, pc - 1, ret);

	if ((!(pc & 15) || !ret->function) && address_place(s, pid, pc, &at) &&
	    (is_signal_frame(&at) || is_context_start(&at))) {
		*ret = at;
		return true;
	}
	ret->offset += known;
	return known;
}

/* Passes on a frame, and before it the functions inlined into it when lines are requested. */
static void put_frame(struct sink *s, const struct frame *f, uint32_t pid, bool called,
		      void (*fn)(void *arg, const struct frame *f), void *arg)
{
	const struct source_place *at = NULL;
	struct frame line = *f;
	uint32_t n = 0;

	if (pid && s->symbols && s->options && opt_on(s->options, OPT_SRCLINE))
		n = symbols_source(s->symbols, (pid_t)pid, s->time, f->address - called, &at);
	for (uint32_t i = 0; i < n; i++) {
		line.file = at[i].file;
		line.line = at[i].line;
		line.kind = at[i].inlined ? FRAME_INLINED : f->kind;
		line.place.function = at[i].inlined || !f->place.function ? at[i].function
									  : f->place.function;
		fn(arg, &line);
	}
	if (!n || at[n - 1].inlined)
		fn(arg, f);
}

static bool is_jit(const struct place *p)
{
	return p->module && !strcmp(p->module, "[jit]");
}

/* Returns the name of a language's file as it is shown. Files inside Node.js (node:internal/url)
 * and Ruby (<internal:kernel>) are in no folder and keep the whole name. */
static const char *language_file(const char *file)
{
	bool inside = file && (!strncmp(file, "node:", 5) || file[0] == '<');

	return file && !inside ? path_base(file) : file;
}

/* Passes on the frame of a function of an interpreted language. */
static struct frame language_frame(const char *language, const struct runtime_frame *f)
{
	const char *file = language_file(f->file);

	return (struct frame){ .kind = frame_kind_of_language(language),
			       .address = f->code,
			       .place = { .module = file, .function = f->function },
			       .file = file,
			       .line = f->line };
}

bool stack_frame(struct sink *s, bool user, uint32_t pid, uint64_t pc, bool called,
		 void (*fn)(void *arg, const struct frame *f), void *arg)
{
	struct frame f = { .address = pc };

	if (user && pc == WIRE_LANGUAGE_HIDDEN)
		return true;
	if (user && is_language(pc)) {
		uint32_t many = 1;

		for (uint32_t i = 0; i < many; i++) {
			struct runtime_frame l = { 0 };

			f = language_frame(s->languages ? languages_frame(s->languages, (pid_t)pid,
									  pc, i, &many, &l)
							: "python",
					   &l);
			fn(arg, &f);
		}
		return true;
	}

	if (!user || pid)
		(void)(called ? return_place : address_place)(s, pid, pc, &f.place);
	else if (s->symbols) /* counted among the losses */
		(void)symbols_user(s->symbols, 0, s->time, pc, &f.place);
	f.kind = !user ? FRAME_KERNEL : is_jit(&f.place) ? FRAME_JIT : FRAME_NATIVE;
	put_frame(s, &f, pid, called && !is_signal_frame(&f.place), fn, arg);
	return !is_signal_frame(&f.place);
}

static void put_end(struct sink *s, uint32_t end, uint32_t pid, uint64_t last,
		    void (*fn)(void *arg, const struct frame *f), void *arg)
{
	char why[ADDRESS_TEXT];

	if (end_text(s, end, pid, last, why, sizeof(why)))
		fn(arg, &(struct frame){ .kind = FRAME_END, .end = why });
}

void stack_finish(struct sink *s, const struct field *f, const uint8_t *data, uint32_t pid,
		  uint64_t last, void (*fn)(void *arg, const struct frame *f), void *arg)
{
	put_end(s, stack_end(s, f, data), pid, last, fn, arg);
}

bool stack_is_user(const struct field *f)
{
	return f->kind == FIELD_USTACK || f->kind == FIELD_USTACKID;
}

void stack_each(struct sink *s, const struct field *f, const uint8_t *data,
		void (*fn)(void *arg, const struct frame *f), void *arg)
{
	uint64_t pcs[STACK_MAX];
	uint32_t pid, n = stack_frames(s, f, data, pcs, STACK_MAX, &pid);
	bool user = stack_is_user(f), called = false;

	for (uint32_t i = 0; i < n; i++)
		called = stack_frame(s, user, pid, pcs[i], called, fn, arg);
	if (user && n)
		stack_finish(s, f, data, pid, pcs[n - 1], fn, arg);
}

void frame_text(struct sink *s, const struct frame *f, char *buf, uint32_t n)
{
	if (frame_is_language(f->kind) && !f->place.function)
		snprintf(buf, n, "[%s]", frame_kind_name(f->kind));
	else
		place_text(s, f->kind != FRAME_KERNEL, &f->place, f->address, ADDRESS_SYMBOL, buf,
			   n);
}

void frame_text_line(struct sink *s, const struct frame *f, char *buf, uint32_t n)
{
	size_t at;

	frame_text(s, f, buf, n);
	at = strlen(buf);
	if (frame_is_language(f->kind) && f->line)
		snprintf(buf + at, n - at, ":%u", f->line);
}

struct stack_printer {
	struct sink *sink;
	struct out *out;
	int indent, width;
	bool addresses;
};

static void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
}

static void language_text(const struct frame *f, char *buf, uint32_t n)
{
	if (f->place.function && f->line)
		snprintf(buf, n, "%s`%s:%u", f->place.module ?: "?", f->place.function, f->line);
	else if (f->place.function)
		snprintf(buf, n, "%s`%s", f->place.module ?: "?", f->place.function);
	else
		snprintf(buf, n, "[%s]", frame_kind_name(f->kind));
}

static void print_frame(void *arg, const struct frame *f)
{
	struct stack_printer *p = arg;
	struct sink *s = p->sink;
	bool inlined = f->kind == FRAME_INLINED;
	char buf[ADDRESS_TEXT];

	out_fill(p->out, ' ', (size_t)p->indent);
	if (p->addresses && f->kind != FRAME_END)
		out_printf(p->out, "0x%012llx ", (unsigned long long)f->address);
	if (f->kind == FRAME_END)
		snprintf(buf, sizeof(buf), "[stack ends: %s]", f->end);
	else if (frame_is_language(f->kind))
		language_text(f, buf, sizeof(buf));
	else
		place_text(s, f->kind != FRAME_KERNEL, &f->place, f->address,
			   inlined ? ADDRESS_SYMBOL : ADDRESS_OFFSET, buf, sizeof(buf));
	if (inlined)
		append(buf, sizeof(buf), " [inlined]");
	if (f->file && !frame_is_language(f->kind))
		append(buf, sizeof(buf), " %s:%u", f->file, f->line);
	out_padded(p->out, buf, strlen(buf), p->width);
	out_char(p->out, '\n');
}

void stack_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *data,
		 int indent, int width)
{
	struct stack_printer p = { .sink = s, .out = o, .width = width };

	if (indent < 0)
		indent = s->options ? (int)opt_num(s->options, OPT_STACKINDENT) : 14;
	if (indent < 0 || indent > 1000)
		indent = 14;
	p.indent = indent;
	out_char(o, '\n');
	stack_each(s, f, data, print_frame, &p);
}

void stack_print_walk(struct sink *s, struct out *o, uint32_t pid, const struct runtime_stack *st,
		      const runtime_merged_vec *merged, uint32_t end, bool addresses)
{
	struct stack_printer p = { .sink = s, .out = o, .indent = 14, .addresses = addresses };
	uint32_t n = merged->n ? merged->n : st->n;
	bool called = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct runtime_merged m = merged->n ? merged->v[i]
							  : (struct runtime_merged){ false, i };

		if (m.language) {
			const struct frame f = language_frame(st->language, &st->frames[m.index]);

			print_frame(&p, &f);
		} else {
			called = stack_frame(s, true, pid, st->pcs[m.index], called, print_frame,
					     &p);
		}
	}
	if (st->n)
		put_end(s, end, pid, st->pcs[st->n - 1], print_frame, &p);
}
