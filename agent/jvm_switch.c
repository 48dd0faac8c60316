/* The library that descry loads into a running JVM (HotSpot), by the JVM's own attach mechanism. It
 * sets flags of the JVM, and makes the JVM give up all code that it has compiled while they had
 * other values. The compilers look at the flags when they begin with a method, and drop a result
 * when one was set meanwhile; the interpreter looks at them each time.
 *
 *	descry: "load" with the text of wire/jvm_text.h    -> Agent_OnAttach(): the flags are true
 *	descry closes the FIFO, or it has ended, also killed  -> watch_holder(): they are false again
 *
 * So long it also keeps some methods from being compiled (jvm_methods.h). With another text it
 * samples objects (jvm_sampling.h) and has no flags.
 * It has no C library, so it does not matter which one the JVM has. The JVM never unloads it.
 * A second text in the same JVM finds the flags true already; the last holder resets them.
 */
#include "agent/jvm_table.h"
#include "agent/memory.h"
#include "agent/sys.h"
#include "agent/jvm_interpreter.h"
#include "agent/jvm_methods.h"
#include "agent/jvm_sampling.h"
#include "wire/jvm_text.h"

enum { CHANGED = -1, INTERPRETS = -2 };
enum {
	AT_FDCWD_ = -100,
	O_CLOEXEC_NONBLOCK = 02004000,
	POLL_IN = 1,
	SYS_POLL = 7,
	CLASS_SIZE = 256,
	/* Milliseconds. A compilation that began while a flag was true ends with the probe in its
	 * code, so the last holder waits a little before the JVM gives its code up. */
	COMPILED_BY_THEN = 500,
	/* The compilers also take a method that waits for them when it is to be interpreted. */
	LOOKS_EVERY = 20,
	LOOKS_MAX = 100,
	BEGUN_BEFORE = 200,
	AGAIN_AFTER = 2000,
};

typedef void deoptimize_fn(jvm_handle jni, jvm_ref self);
typedef int32_t queue_size_fn(jvm_handle jni, jvm_ref self, int32_t level);

static struct flag {
	volatile uint8_t *at;
	uint8_t before;
	uint32_t holders;
} flags[JAVA_SWITCH_FLAGS * 2];

static struct holder {
	int32_t used;
	int32_t fifo;
	uint8_t holds[JAVA_SWITCH_FLAGS * 2];
	uint8_t samples;
	uint8_t has_interpreter;
	struct methods interpreted, entered;
} holders[JAVA_SWITCH_HOLDERS];

static uint32_t locked;
static deoptimize_fn *deoptimize_all;
static queue_size_fn *queue_size; /* methods that wait for a compiler */

static void lock(void)
{
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		sys2(SYS_SCHED_YIELD, 0, 0);
}

static void unlock(void)
{
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

/* --- the JVM's own test functions ---
 *
 * No documented function makes a JVM give up its compiled code. But all builds have the functions
 * of HotSpot's own tests (class WhiteBox), which do. The JVM registers them for a class of that
 * name that its first loader has, when the bool WhiteBoxAPI is true. So this makes such a class,
 * sets the bool for the moment of the call, and takes the functions' addresses where the JVM passes
 * them to RegisterNatives(). None of them is registered.
 */

static jvm_handle tools; /* jvmtiEnv *, one for all */

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static int32_t take_natives(jvm_handle jni, jvm_ref class, const struct jvm_native *v, int32_t n)
{
	(void)jni;
	(void)class;
	for (int32_t i = 0; i < n; i++) {
		if (equal(v[i].name, "deoptimizeAll") && equal(v[i].signature, "()V"))
			deoptimize_all = (deoptimize_fn *)(uintptr_t)v[i].function;
		if (equal(v[i].name, "getCompileQueueSize") && equal(v[i].signature, "(I)I"))
			queue_size = (queue_size_fn *)(uintptr_t)v[i].function;
	}
	return 0;
}

static uint8_t *put(uint8_t *to, uint32_t value, uint32_t bytes)
{
	while (bytes--)
		*to++ = (uint8_t)(value >> (8 * bytes));
	return to;
}

static uint8_t *put_utf8(uint8_t *to, const char *s)
{
	uint32_t n = 0;

	while (s[n])
		n++;
	to = put(put(to, 1, 1), n, 2);
	mem_copy(to, s, n);
	return to + n;
}

/* Writes the file of a class that has nothing but `static native void registerNatives()` (JVM
 * specification, chapter 4). Returns its size. */
static int32_t write_class(const char *name, uint8_t *ret)
{
	enum {
		MAGIC = (int)0xcafebabe,
		JAVA_8 = 52,
		PUBLIC = 1,
		STATIC = 8,
		SUPER = 32,
		NATIVE = 256
	};
	uint8_t *to = ret;

	to = put(put(to, (uint32_t)MAGIC, 4), JAVA_8, 4);
	to = put(to, 7, 2); /* constants and 1 */
	to = put(put(to, 7, 1), 2, 2);
	to = put_utf8(to, name);
	to = put(put(to, 7, 1), 4, 2);
	to = put_utf8(to, "java/lang/Object");
	to = put_utf8(to, "registerNatives");
	to = put_utf8(to, "()V");
	to = put(put(put(to, PUBLIC | SUPER, 2), 1, 2), 3, 2);
	to = put(to, 0, 4); /* no interfaces, no fields */
	to = put(put(to, 1, 2), PUBLIC | STATIC | NATIVE, 2);
	to = put(put(put(to, 5, 2), 6, 2), 0, 2);
	to = put(to, 0, 2);
	return (int32_t)(to - ret);
}

/* Makes the JVM pass its test functions to take_natives(), under the class's name in this
 * version. */
static void ask_natives(jvm_handle jni, const char *name)
{
	static void *functions[JNI_FUNCTIONS];
	uint8_t code[CLASS_SIZE];
	void **own = *jni;
	jvm_ref class = jni_define_class(jni, name, code, write_class(name, code)), method;

	if (!class) {
		jni_clear(jni);
		class = jni_find_class(jni, name);
	}
	method = class ? jni_method(jni, JNI_GET_STATIC_METHOD_ID, class, "registerNatives", "()V")
		       : 0;
	if (method) {
		mem_copy(functions, own, sizeof(functions));
		functions[JNI_REGISTER_NATIVES] = (void *)(uintptr_t)take_natives;
		*jni = functions; /* this thread's */
		jni_call_static_void(jni, class, method);
		*jni = own;
	}
	jni_clear(jni);
}

static int find_internals(jvm_handle jni, volatile uint8_t *white_box)
{
	enum { JAVA_19 = 0x00130000 };
	static const char *const names[] = { "sun/hotspot/WhiteBox", "jdk/test/whitebox/WhiteBox" };
	int newer = jni_version(jni) >= JAVA_19;
	uint8_t before = *white_box;

	for (int i = 0; i < 2 && !deoptimize_all; i++) {
		*white_box = 1;
		ask_natives(jni, names[i ^ newer]);
		*white_box = before;
	}
	return deoptimize_all && queue_size;
}

/* --- the flags --- */

/* was_off: another tracer has set the flag, which is to be false when none is left. Returns true
 * when the flag has changed. */
static int take_flag(volatile uint8_t *at, int was_off, struct holder *h)
{
	uint32_t i = 0;

	while (i < JAVA_SWITCH_FLAGS * 2 && flags[i].at != at)
		i++;
	if (i == JAVA_SWITCH_FLAGS * 2)
		for (i = 0; flags[i].holders && i < JAVA_SWITCH_FLAGS * 2 - 1;)
			i++;
	if (flags[i].holders && flags[i].at != at)
		return 0; /* more flags than there are: not a text of descry's */
	h->holds[i] = 1;
	if (flags[i].holders++)
		return 0;
	flags[i].at = at;
	flags[i].before = was_off ? 0 : *at;
	*at = 1;
	return !flags[i].before;
}

static int drop_flags(struct holder *h)
{
	int changed = 0;

	for (uint32_t i = 0; i < JAVA_SWITCH_FLAGS * 2; i++) {
		if (!h->holds[i])
			continue;
		h->holds[i] = 0;
		if (--flags[i].holders)
			continue;
		changed |= !flags[i].before;
		*flags[i].at = flags[i].before;
	}
	return changed;
}

static void drop_methods(struct holder *h, jvm_handle jni)
{
	jvm_methods_drop(tools, jni, &h->interpreted);
	jvm_methods_drop(tools, jni, &h->entered);
}

/* Under the lock. */
static void drop_interpreter(struct holder *h)
{
	if (h->has_interpreter)
		jvm_interpreter_drop();
	h->has_interpreter = 0;
}

static void let_go(struct holder *h, jvm_handle jni)
{
	int changed;

	drop_methods(h, jni);
	lock();
	drop_interpreter(h);
	if (h->samples)
		jvm_samples_stop(jni);
	changed = drop_flags(h);
	sys2(SYS_CLOSE, (uint64_t)h->fifo, 0);
	h->used = 0;
	unlock();
	if (!changed)
		return;
	sys4(SYS_POLL, 0, 0, COMPILED_BY_THEN, 0);
	deoptimize_all(jni, 0);
}

/* Waits until the compilers have no method that is to be interpreted. */
static void await_compilers(jvm_handle jni)
{
	enum { C1 = 1, C2 = 4 };

	for (int i = 0; i < LOOKS_MAX && (queue_size(jni, 0, C1) || queue_size(jni, 0, C2)); i++)
		sys4(SYS_POLL, 0, 0, LOOKS_EVERY, 0);
	sys4(SYS_POLL, 0, 0, BEGUN_BEFORE, 0);
}

/* The thread of a holder. */
static void watch_holder(jvm_handle jvmti, jvm_handle jni, void *arg)
{
	struct holder *h = arg;
	uint64_t wait = h->interpreted.mark ? AGAIN_AFTER : (uint64_t)-1;
	uint8_t byte;

	(void)jvmti;
	for (;;) {
		struct {
			int32_t fd;
			int16_t events, found;
		} p = { h->fifo, POLL_IN, 0 };
		int64_t n = sys4(SYS_POLL, (uintptr_t)&p, 1, wait, 0);

		if (!n) /* a method that took the compiler longer */
			deoptimize_all(jni, 0);
		wait = (uint64_t)-1;
		if (!n || n == E_INTR)
			continue;
		n = sys4(SYS_READ, (uint64_t)h->fifo, (uintptr_t)&byte, 1, 0);
		if (n != E_INTR && n != E_AGAIN)
			break;
	}
	let_go(h, jni);
}

static int start_watch(jvm_handle jni, struct holder *h)
{
	jvm_ref class, constructor, name, thread;

	class = jni_find_class(jni, "java/lang/Thread");
	constructor =
		class ? jni_method(jni, JNI_GET_METHOD_ID, class, "<init>", "(Ljava/lang/String;)V")
		      : 0;
	name = constructor ? jni_string(jni, "descry") : 0;
	thread = name ? jni_new(jni, class, constructor, name) : 0;
	if (!thread || jvmti_run_thread(tools, thread, watch_holder, h)) {
		jni_clear(jni);
		return JAVA_SWITCH_NO_THREAD;
	}
	return JAVA_SWITCH_ON;
}

/* --- the text --- */

/* The text of a flag that another tracer has set begins with '-'. */
static volatile uint8_t *next_address(const char **text, int *ret_was_off)
{
	const char *p = *text;
	uint64_t v = 0;

	while (*p == ' ')
		p++;
	*ret_was_off = *p == '-';
	p += *ret_was_off;
	for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	*text = p;
	return (volatile uint8_t *)(uintptr_t)v;
}

static struct holder *new_holder(const char **text)
{
	char path[JAVA_SWITCH_PATH];
	struct holder *h = holders;
	uint32_t n = 0;
	int64_t fd;

	for (; (*text)[n] && (*text)[n] != ' ' && n + 1 < sizeof(path); n++)
		path[n] = (*text)[n];
	path[n] = 0;
	*text += n;
	while (h < holders + JAVA_SWITCH_HOLDERS && h->used)
		h++;
	if (h == holders + JAVA_SWITCH_HOLDERS)
		return 0;
	fd = sys4(SYS_OPENAT, (uint64_t)AT_FDCWD_, (uintptr_t)path, O_CLOEXEC_NONBLOCK, 0);
	mem_zero(h, sizeof(*h)); /* an initializer may call memset(3) */
	h->used = 1;
	h->fifo = (int32_t)fd;
	return h;
}

static void drop_holder(struct holder *h)
{
	drop_flags(h);
	sys2(SYS_CLOSE, (uint64_t)h->fifo, 0);
	h->used = 0;
}

/* text: "*BYTES". */
static int sample(jvm_handle jni, struct holder *h, const char *text)
{
	int was_off, result;

	text++;
	result = jvm_samples_start(jni, (uintptr_t)next_address(&text, &was_off));
	h->samples = !result;
	result = result ? result : start_watch(jni, h);
	if (result && h->samples)
		jvm_samples_stop(jni);
	if (result)
		drop_holder(h);
	return result;
}

/* text: what is behind the flags. Returns true when methods are to be interpreted. */
static int take_methods(jvm_handle jni, struct holder *h, const char *text)
{
	const char *behind = jvm_interpreter_take(text);

	if (behind) {
		h->has_interpreter = 1;
		text = jvm_methods_take(tools, jni, &h->entered, jvm_interpreter_mark, behind);
		text += *text == ' ';
	}
	behind = jvm_methods_access(jni, text);
	if (behind)
		jvm_methods_take(tools, jni, &h->interpreted, jvm_methods_interpret, behind);
	return !!behind;
}

/* Returns CHANGED or INTERPRETS when the JVM must give up its code, else a result. */
static int switch_on(jvm_handle jni, const char *text)
{
	struct holder *h = new_holder(&text);
	int result = JAVA_SWITCH_NO_INTERNALS, changed = 0, was_off;
	volatile uint8_t *white_box, *flag;

	if (!h)
		return JAVA_SWITCH_NO_ROOM;
	if (h->fifo >= 0 && text[0] == ' ' && text[1] == '*')
		return sample(jni, h, text + 1);
	white_box = next_address(&text, &was_off);
	if (h->fifo < 0 || !white_box) {
		h->used = 0;
		return h->fifo < 0 ? JAVA_SWITCH_NO_FIFO : JAVA_SWITCH_BAD_TEXT;
	}
	if (find_internals(jni, white_box)) {
		while ((flag = next_address(&text, &was_off)))
			changed = take_flag(flag, was_off, h) ? CHANGED : changed;
		changed = take_methods(jni, h, text) ? INTERPRETS : changed;
		result = start_watch(jni, h);
	}
	if (result) {
		drop_methods(h, jni);
		drop_interpreter(h);
		drop_holder(h);
	}
	return result ?: changed;
}

__attribute__((visibility("default"))) int32_t Agent_OnAttach(jvm_handle vm, const char *text,
							      void *reserved);

/* Called by the JVM, in a thread of its own, one call at a time. */
int32_t Agent_OnAttach(jvm_handle vm, const char *text, void *reserved)
{
	jvm_handle jni;
	int result;

	(void)reserved;
	if (vm_get_env(vm, &jni, JNI_VERSION) || (!tools && vm_get_env(vm, &tools, JVMTI_VERSION)))
		return JAVA_SWITCH_NO_JVMTI;
	lock();
	result = text ? switch_on(jni, text) : JAVA_SWITCH_BAD_TEXT;
	unlock();
	if (result >= 0)
		return result;
	if (result == INTERPRETS)
		await_compilers(jni);
	deoptimize_all(jni, 0);
	return JAVA_SWITCH_ON;
}
