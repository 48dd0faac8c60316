/* Has the JVM sample the objects that its threads make (JEP 331), and keeps the samples by weak
 * references. */
#include "agent/jvm_sampling.h"
#include "agent/sys.h"
#include "wire/jvm_samples.h"
#include "wire/jvm_text.h"

enum {
	CAN_SAMPLE = 43, /* bit of the capabilities */
	LOOKS = 8,       /* entries that are tried before another one is taken into use */
	SYS_POLL = 7,
};

static struct wire_jvm_sample samples[WIRE_JVM_SAMPLES];
static uint32_t used;   /* entries that were ever in use are the first */
static uint32_t cursor; /* of the search for a free one */
static uint64_t serials;

static jvm_handle sampler;  /* jvmtiEnv *; NULL: nothing is sampled */
static uint32_t on, inside; /* inside: threads in object_sampled() */

/* Has a probe of descry's, and nothing else to do. */
__attribute__((visibility("default"), noinline, noclone)) void
descry_sampled(const struct wire_jvm_sample *table, uint64_t entry, uint64_t serial, uint64_t size,
	       const char *class);

void descry_sampled(const struct wire_jvm_sample *table, uint64_t entry, uint64_t serial,
		    uint64_t size, const char *class)
{
	__asm__ volatile("nopl 0(%%rax, %%rax)"
			 :
			 : "r"(table), "r"(entry), "r"(serial), "r"(size), "r"(class));
}

/* Makes an entry busy that is free or whose object has died. */
static int take_entry(jvm_handle jni, struct wire_jvm_sample *e)
{
	uint64_t before = __atomic_load_n(&e->reference, __ATOMIC_RELAXED);
	jvm_ref object = (jvm_ref)(uintptr_t)before;

	if (before == WIRE_JVM_SAMPLE_BUSY ||
	    !__atomic_compare_exchange_n(&e->reference, &before, WIRE_JVM_SAMPLE_BUSY, 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (!before)
		return 1;
	if (jni_same(jni, object, 0)) {
		jni_drop_weak(jni, object);
		return 1;
	}
	__atomic_store_n(&e->reference, before, __ATOMIC_RELEASE);
	return 0;
}

/* Returns an entry that is busy now, or NULL when there is no room. An entry is given to another
 * sample soon after its object has died, so the JVM's list of weak references stays short. */
static struct wire_jvm_sample *new_entry(jvm_handle jni)
{
	uint32_t n = __atomic_load_n(&used, __ATOMIC_RELAXED);

	for (uint32_t i = 0; n && i < LOOKS; i++) {
		uint32_t at = __atomic_fetch_add(&cursor, 1, __ATOMIC_RELAXED) % n;

		if (take_entry(jni, &samples[at]))
			return &samples[at];
	}
	do
		if (n == WIRE_JVM_SAMPLES)
			return 0;
	while (!__atomic_compare_exchange_n(&used, &n, n + 1, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	return take_entry(jni, &samples[n]) ? &samples[n] : 0;
}

/* The JVM calls it in the thread that has made the object, which may be moved meanwhile. A sample
 * for which there is no room is passed on with an entry that the table does not have. */
static void object_sampled(jvm_handle jvmti, jvm_handle jni, jvm_ref thread, jvm_ref object,
			   jvm_ref class, int64_t size)
{
	struct wire_jvm_sample *e;
	uint64_t serial;
	char *name;
	jvm_ref kept;

	(void)thread;
	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&on, __ATOMIC_SEQ_CST)) {
		e = new_entry(jni);
		kept = e ? jni_new_weak(jni, object) : 0;
		serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
		name = jvmti_class_name(jvmti, class);
		descry_sampled(samples, kept ? (uint64_t)(e - samples) : WIRE_JVM_SAMPLES, serial,
			       (uint64_t)size, name ? name : "");
		if (e) {
			e->serial = serial;
			__atomic_store_n(&e->reference, (uintptr_t)kept, __ATOMIC_RELEASE);
		}
		if (name)
			jvmti_free(jvmti, name);
	}
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

int jvm_samples_start(jvm_handle jni, uint64_t interval)
{
	jvm_handle vm = jni_vm(jni);

	if (sampler)
		return JAVA_SWITCH_SAMPLED;
	if (!vm || vm_get_env(vm, &sampler, JVMTI_SAMPLES_VERSION)) {
		sampler = 0;
		return JAVA_SWITCH_NO_SAMPLES;
	}
	if (jvmti_can(sampler, CAN_SAMPLE) || jvmti_sampling_interval(sampler, (int32_t)interval) ||
	    jvmti_follow_samples(sampler, object_sampled)) {
		jvmti_dispose(sampler);
		sampler = 0;
		return JAVA_SWITCH_NO_SAMPLES;
	}
	__atomic_store_n(&on, 1, __ATOMIC_SEQ_CST);
	return JAVA_SWITCH_ON;
}

void jvm_samples_stop(jvm_handle jni)
{
	__atomic_store_n(&on, 0, __ATOMIC_SEQ_CST);
	jvmti_sampling_interval(sampler, JVMTI_SAMPLES_EVERY);
	jvmti_dispose(sampler);
	while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
		sys4(SYS_POLL, 0, 0, 1, 0);
	for (uint32_t i = 0; i < used; i++) {
		if (samples[i].reference)
			jni_drop_weak(jni, (jvm_ref)(uintptr_t)samples[i].reference);
		samples[i].reference = 0;
	}
	used = 0;
	__atomic_store_n(&sampler, 0, __ATOMIC_RELEASE);
}
