/* Marks the JVM's Methods, and has the marks by which its compilers leave them alone. */
#include "agent/jvm_methods.h"
#include "agent/memory.h"
#include "agent/sys.h"

/* Java 17 (accessFlags.hpp, method.hpp): bits of a Method's access flags, the place of its other
 * flags from these on, and bits there. The JVM does not use the last one; with it, this library has
 * set NOT_INLINED. */
enum { NOT_COMPILED = 0x06000000, FLAGS_AT = 10, NOT_INLINED = 4, BY_DESCRY = 0x8000 };
/* Java 21 (methodFlags.hpp): bits of a Method's status, which are the same. It has two bits for the
 * compilers, and one for code that replaces a running loop. */
enum { NOT_COMPILED_21 = 0x700, NOT_INLINED_21 = 0x1000 };
static const uint32_t by_descry_21 = 0x80000000;
enum { JAVA_21 = 0x00150000 };

static struct methods *first;
static uint64_t flags_at; /* of the access flags, or of the status */
static int has_status;
static uint32_t locked;

/* Nothing waits under this lock: the JVM may call class_prepared() in any thread. */
static void methods_lock(void)
{
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		sys2(SYS_SCHED_YIELD, 0, 0);
}

static void methods_unlock(void)
{
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static uint32_t length(const char *s, char end)
{
	uint32_t n = 0;

	while (s[n] && s[n] != end)
		n++;
	return n;
}

static int matches(const char *p, uint32_t n, const char *s, uint32_t len)
{
	const int before = n && *p == '*';
	int behind;

	p += before;
	n -= (uint32_t)before;
	behind = n && p[n - 1] == '*';
	n -= (uint32_t)behind;
	for (uint32_t at = 0; at + n <= len; at++) {
		uint32_t i = 0;

		while (i < n && p[i] == s[at + i])
			i++;
		if (i == n && (behind || at + n == len || (!n && before)))
			return 1;
		if (!before)
			break;
	}
	return 0;
}

/* class: "Lcom/shop/Order;". method: NULL for any. */
static int in_text(const char *text, const char *class, const char *method)
{
	while (*text == ';') {
		const char *of_class = ++text, *of_method;
		uint32_t n = length(text, '.'), k;

		text += n + (text[n] == '.');
		of_method = text;
		k = length(text, ';');
		text += k;
		if (matches(of_class, n, class + 1, length(class + 1, ';')) &&
		    (!method || matches(of_method, k, method, length(method, 0))))
			return 1;
	}
	return 0;
}

static int is_wanted(method_mark *mark, const char *class, const char *method)
{
	int found = 0;

	methods_lock();
	for (const struct methods *m = first; m && !found; m = m->next)
		found = m->mark == mark && in_text(m->text, class, method);
	methods_unlock();
	return found;
}

static void mark_status(uint32_t *status, int wanted)
{
	const uint32_t ours = NOT_INLINED_21 | by_descry_21;

	if (wanted)
		__atomic_or_fetch(status, NOT_COMPILED_21 | (*status & NOT_INLINED_21 ? 0 : ours),
				  __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(status, ~(NOT_COMPILED_21 | (*status & by_descry_21 ? ours : 0)),
				   __ATOMIC_RELAXED);
}

/* A jmethodID is the address of a word that has the Method's. */
void jvm_methods_interpret(jvm_ref method, int wanted)
{
	uint32_t *access = (uint32_t *)(*(uint64_t *)method + flags_at);
	uint16_t *flags = (uint16_t *)(*(uint64_t *)method + flags_at + FLAGS_AT);

	if (has_status) {
		mark_status(access, wanted);
		return;
	}
	if (wanted) {
		__atomic_or_fetch(access, NOT_COMPILED, __ATOMIC_RELAXED);
		if (!(*flags & NOT_INLINED))
			__atomic_or_fetch(flags, NOT_INLINED | BY_DESCRY, __ATOMIC_RELAXED);
		return;
	}
	__atomic_and_fetch(access, ~(uint32_t)NOT_COMPILED, __ATOMIC_RELAXED);
	if (*flags & BY_DESCRY)
		__atomic_and_fetch(flags, (uint16_t) ~(NOT_INLINED | BY_DESCRY), __ATOMIC_RELAXED);
}

/* dropped: only methods of this text; NULL: those of all. */
static void mark_class(jvm_handle tools, jvm_ref class, method_mark *mark, const char *dropped)
{
	char *name = jvmti_class_name(tools, class);
	jvm_ref *methods = 0;
	int32_t n = 0;

	if (name && *name == 'L' &&
	    (dropped ? in_text(dropped, name, 0) : is_wanted(mark, name, 0)))
		jvmti_methods(tools, class, &n, &methods);
	for (int32_t i = 0; methods && i < n; i++) {
		char *method = jvmti_method_name(tools, methods[i]);
		int wanted = method && is_wanted(mark, name, method);

		if (method && (wanted || (dropped && in_text(dropped, name, method))))
			mark(methods[i], wanted);
		if (method)
			jvmti_free(tools, method);
	}
	if (methods)
		jvmti_free(tools, methods);
	if (name)
		jvmti_free(tools, name);
}

static void mark_classes(jvm_handle tools, jvm_handle jni, method_mark *mark, const char *dropped)
{
	jvm_ref *classes;
	int32_t n = 0;

	jvmti_classes(tools, &n, &classes);
	for (int32_t i = 0; classes && i < n; i++) {
		mark_class(tools, classes[i], mark, dropped);
		jni_drop(jni, classes[i]);
	}
	if (classes)
		jvmti_free(tools, classes);
}

/* The lists of methods use a few different functions of type method_mark. Returns number n of them,
 * from 0; NULL: fewer are in use. */
static method_mark *mark_at(uint32_t n)
{
	method_mark *mark = 0;

	methods_lock();
	for (const struct methods *m = first; m; m = m->next) {
		int again = 0;

		for (const struct methods *k = first; k != m; k = k->next)
			again |= k->mark == m->mark;
		if (!again && !n--) {
			mark = m->mark;
			break;
		}
	}
	methods_unlock();
	return mark;
}

static void class_prepared(jvm_handle tools, jvm_handle jni, jvm_ref thread, jvm_ref class)
{
	method_mark *mark;

	(void)jni;
	(void)thread;
	for (uint32_t i = 0; (mark = mark_at(i)); i++)
		mark_class(tools, class, mark, 0);
}

const char *jvm_methods_access(jvm_handle jni, const char *text)
{
	uint64_t at = 0;

	if (*text != '@')
		return 0;
	while (*++text && *text != ';')
		at = at << 4 | (uint64_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
	flags_at = at;
	has_status = jni_version(jni) >= JAVA_21;
	return text;
}

const char *jvm_methods_take(jvm_handle tools, jvm_handle jni, struct methods *m, method_mark *mark,
			     const char *text)
{
	const uint32_t n = length(text, ' ');

	if (!n || n >= sizeof(m->text))
		return text + n;
	mem_copy(m->text, text, n);
	m->text[n] = 0;
	m->mark = mark;
	methods_lock();
	m->next = first;
	first = m;
	methods_unlock();
	jvmti_follow_classes(tools, class_prepared);
	mark_classes(tools, jni, mark, 0);
	return text + n;
}

void jvm_methods_drop(jvm_handle tools, jvm_handle jni, struct methods *m)
{
	struct methods **at = &first;

	if (!m->mark)
		return;
	methods_lock();
	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
	methods_unlock();
	mark_classes(tools, jni, m->mark, m->text);
	m->mark = 0;
}
