/* The functions that a JVM gives to native code (JNI and JVM TI specifications): handles whose
 * first word is the address of a table of functions. */
#ifndef DESCRY_AGENT_JVM_TABLE_H
#define DESCRY_AGENT_JVM_TABLE_H

#include <stdint.h>

/* A handle: JavaVM *, JNIEnv *, jvmtiEnv *. */
typedef void ***jvm_handle;
typedef void *jvm_ref; /* jobject, jclass, jmethodID */

enum {
	JNI_VERSION = 0x00010006,
	JVMTI_VERSION = 0x30010000,
	JVMTI_SAMPLES_VERSION = 0x300b0000, /* the first that has samples of objects: 11 */
	JVMTI_SAMPLES_EVERY = 512 * 1024,   /* bytes, unless an agent sets another number */
	JVMTI_PRIORITY = 5,                 /* JVMTI_THREAD_NORM_PRIORITY */
	JVMTI_ENABLE = 1,
	JVMTI_CLASS_PREPARE = 56,
	JVMTI_SAMPLED_OBJECT = 86,
	JVMTI_FIRST_EVENT = 50,
	JVMTI_CAPABILITIES = 16, /* bytes */
};

/* Indexes in the tables. */
enum {
	VM_GET_ENV = 6,

	JNI_GET_VERSION = 4,
	JNI_DEFINE_CLASS = 5,
	JNI_FIND_CLASS = 6,
	JNI_EXCEPTION_CLEAR = 17,
	JNI_IS_SAME_OBJECT = 24,
	JNI_NEW_OBJECT_A = 30,
	JNI_GET_METHOD_ID = 33,
	JNI_GET_STATIC_METHOD_ID = 113,
	JNI_CALL_STATIC_VOID_A = 143,
	JNI_NEW_STRING_UTF = 167,
	JNI_REGISTER_NATIVES = 215,
	JNI_GET_JAVA_VM = 219,
	JNI_NEW_WEAK = 226,
	JNI_DELETE_WEAK = 227,
	JNI_EXCEPTION_CHECK = 228,
	JNI_FUNCTIONS = 229,

	JNI_DELETE_LOCAL_REF = 23,

	/* numbered from 1 in the specification */
	JVMTI_SET_EVENT_NOTIFICATION_MODE = 2 - 1,
	JVMTI_DEALLOCATE = 47 - 1,
	JVMTI_GET_CLASS_SIGNATURE = 48 - 1,
	JVMTI_GET_CLASS_METHODS = 52 - 1,
	JVMTI_GET_METHOD_NAME = 64 - 1,
	JVMTI_GET_LOADED_CLASSES = 78 - 1,
	JVMTI_SET_EVENT_CALLBACKS = 122 - 1,
	JVMTI_DISPOSE_ENVIRONMENT = 127 - 1,
	JVMTI_ADD_CAPABILITIES = 142 - 1,
	JVMTI_SET_HEAP_SAMPLING_INTERVAL = 156 - 1,
	JVMTI_RUN_AGENT_THREAD = 12 - 1,
};

/* A native function and its name (JNINativeMethod). */
struct jvm_native {
	const char *name, *signature;
	void *function;
};

#define JVM_CALL(handle, index, type) ((type)(*(handle))[index])

static inline int32_t vm_get_env(jvm_handle vm, jvm_handle *ret, int32_t version)
{
	return JVM_CALL(vm, VM_GET_ENV, int32_t(*)(jvm_handle, jvm_handle *, int32_t))(vm, ret,
										       version);
}

static inline int32_t jni_version(jvm_handle jni)
{
	return JVM_CALL(jni, JNI_GET_VERSION, int32_t(*)(jvm_handle))(jni);
}

/* Functions that return NULL may have left an exception pending. */
static inline void jni_clear(jvm_handle jni)
{
	JVM_CALL(jni, JNI_EXCEPTION_CLEAR, void (*)(jvm_handle))(jni);
}

static inline int jni_failed(jvm_handle jni)
{
	return JVM_CALL(jni, JNI_EXCEPTION_CHECK, uint8_t(*)(jvm_handle))(jni) != 0;
}

static inline jvm_ref jni_define_class(jvm_handle jni, const char *name, const uint8_t *code,
				       int32_t n)
{
	return JVM_CALL(jni, JNI_DEFINE_CLASS,
			jvm_ref(*)(jvm_handle, const char *, jvm_ref, const uint8_t *,
				   int32_t))(jni, name, 0, code, n);
}

static inline jvm_ref jni_find_class(jvm_handle jni, const char *name)
{
	return JVM_CALL(jni, JNI_FIND_CLASS, jvm_ref(*)(jvm_handle, const char *))(jni, name);
}

static inline jvm_ref jni_method(jvm_handle jni, int index, jvm_ref class, const char *name,
				 const char *signature)
{
	return JVM_CALL(jni, index, jvm_ref(*)(jvm_handle, jvm_ref, const char *, const char *))(
		jni, class, name, signature);
}

static inline void jni_call_static_void(jvm_handle jni, jvm_ref class, jvm_ref method)
{
	JVM_CALL(jni, JNI_CALL_STATIC_VOID_A, void (*)(jvm_handle, jvm_ref, jvm_ref, const void *))
	(jni, class, method, 0);
}

static inline jvm_ref jni_string(jvm_handle jni, const char *text)
{
	return JVM_CALL(jni, JNI_NEW_STRING_UTF, jvm_ref(*)(jvm_handle, const char *))(jni, text);
}

/* Makes an object by a constructor with one argument. */
static inline jvm_ref jni_new(jvm_handle jni, jvm_ref class, jvm_ref constructor, jvm_ref arg)
{
	const uint64_t args[] = { (uintptr_t)arg };

	return JVM_CALL(jni, JNI_NEW_OBJECT_A,
			jvm_ref(*)(jvm_handle, jvm_ref, jvm_ref, const void *))(jni, class,
										constructor, args);
}

/* Starts a daemon thread of the JVM that runs a native function. Returns 0 when it runs. */
static inline int32_t jvmti_run_thread(jvm_handle jvmti, jvm_ref thread,
				       void (*start)(jvm_handle jvmti, jvm_handle jni, void *arg),
				       void *arg)
{
	return JVM_CALL(jvmti, JVMTI_RUN_AGENT_THREAD,
			int32_t(*)(jvm_handle, jvm_ref, void *, const void *, int32_t))(
		jvmti, thread, (void *)(uintptr_t)start, arg, JVMTI_PRIORITY);
}

/* Has a function called at each event of a kind from now on. An environment has one kind. */
static inline int32_t jvmti_follow(jvm_handle jvmti, int32_t event, void *call)
{
	void *callbacks[JVMTI_SAMPLED_OBJECT - JVMTI_FIRST_EVENT + 1];

	for (uint32_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]); i++) {
		callbacks[i] = 0;
		__asm__ volatile("" ::: "memory"); /* clang makes a call of memset(3) of it */
	}
	callbacks[event - JVMTI_FIRST_EVENT] = call;
	return JVM_CALL(jvmti, JVMTI_SET_EVENT_CALLBACKS, int32_t(*)(jvm_handle, void **, int32_t))(
		       jvmti, callbacks, sizeof(callbacks)) ||
	       JVM_CALL(jvmti, JVMTI_SET_EVENT_NOTIFICATION_MODE,
			int32_t(*)(jvm_handle, int32_t, int32_t, jvm_ref, ...))(jvmti, JVMTI_ENABLE,
										event, 0);
}

typedef void class_prepare_fn(jvm_handle jvmti, jvm_handle jni, jvm_ref thread, jvm_ref class);

/* Has a function called for each class, before the class is used. */
static inline int32_t jvmti_follow_classes(jvm_handle jvmti, class_prepare_fn *call)
{
	return jvmti_follow(jvmti, JVMTI_CLASS_PREPARE, (void *)(uintptr_t)call);
}

typedef void object_sampled_fn(jvm_handle jvmti, jvm_handle jni, jvm_ref thread, jvm_ref object,
			       jvm_ref class, int64_t size);

/* Has a function called for each object that is sampled. */
static inline int32_t jvmti_follow_samples(jvm_handle jvmti, object_sampled_fn *call)
{
	return jvmti_follow(jvmti, JVMTI_SAMPLED_OBJECT, (void *)(uintptr_t)call);
}

/* bit: of jvmtiCapabilities. */
static inline int32_t jvmti_can(jvm_handle jvmti, int bit)
{
	uint8_t capabilities[JVMTI_CAPABILITIES] = { 0 };

	capabilities[bit / 8] = (uint8_t)(1 << bit % 8);
	return JVM_CALL(jvmti, JVMTI_ADD_CAPABILITIES,
			int32_t(*)(jvm_handle, const void *))(jvmti, capabilities);
}

static inline int32_t jvmti_sampling_interval(jvm_handle jvmti, int32_t bytes)
{
	return JVM_CALL(jvmti, JVMTI_SET_HEAP_SAMPLING_INTERVAL,
			int32_t(*)(jvm_handle, int32_t))(jvmti, bytes);
}

static inline void jvmti_dispose(jvm_handle jvmti)
{
	JVM_CALL(jvmti, JVMTI_DISPOSE_ENVIRONMENT, int32_t(*)(jvm_handle))(jvmti);
}

static inline void jvmti_free(jvm_handle jvmti, void *p)
{
	JVM_CALL(jvmti, JVMTI_DEALLOCATE, int32_t(*)(jvm_handle, void *))(jvmti, p);
}

/* The results of these are freed by jvmti_free(); *ret is NULL on failure. */
static inline void jvmti_classes(jvm_handle jvmti, int32_t *ret_n, jvm_ref **ret)
{
	*ret = 0;
	JVM_CALL(jvmti, JVMTI_GET_LOADED_CLASSES, int32_t(*)(jvm_handle, int32_t *, jvm_ref **))
	(jvmti, ret_n, ret);
}

static inline void jvmti_methods(jvm_handle jvmti, jvm_ref class, int32_t *ret_n, jvm_ref **ret)
{
	*ret = 0;
	JVM_CALL(jvmti, JVMTI_GET_CLASS_METHODS,
		 int32_t(*)(jvm_handle, jvm_ref, int32_t *, jvm_ref **))
	(jvmti, class, ret_n, ret);
}

static inline char *jvmti_class_name(jvm_handle jvmti, jvm_ref class)
{
	char *name = 0;

	JVM_CALL(jvmti, JVMTI_GET_CLASS_SIGNATURE,
		 int32_t(*)(jvm_handle, jvm_ref, char **, char **))
	(jvmti, class, &name, 0);
	return name;
}

static inline char *jvmti_method_name(jvm_handle jvmti, jvm_ref method)
{
	char *name = 0;

	JVM_CALL(jvmti, JVMTI_GET_METHOD_NAME,
		 int32_t(*)(jvm_handle, jvm_ref, char **, char **, char **))
	(jvmti, method, &name, 0, 0);
	return name;
}

static inline void jni_drop(jvm_handle jni, jvm_ref local)
{
	JVM_CALL(jni, JNI_DELETE_LOCAL_REF, void (*)(jvm_handle, jvm_ref))(jni, local);
}

/* NULL when the JVM has no memory for it; no exception is pending then. */
static inline jvm_ref jni_new_weak(jvm_handle jni, jvm_ref object)
{
	jvm_ref weak = JVM_CALL(jni, JNI_NEW_WEAK, jvm_ref(*)(jvm_handle, jvm_ref))(jni, object);

	if (!weak)
		jni_clear(jni);
	return weak;
}

static inline void jni_drop_weak(jvm_handle jni, jvm_ref weak)
{
	JVM_CALL(jni, JNI_DELETE_WEAK, void (*)(jvm_handle, jvm_ref))(jni, weak);
}

static inline int jni_same(jvm_handle jni, jvm_ref a, jvm_ref b)
{
	return JVM_CALL(jni, JNI_IS_SAME_OBJECT, uint8_t(*)(jvm_handle, jvm_ref, jvm_ref))(jni, a,
											   b) != 0;
}

/* NULL on failure. */
static inline jvm_handle jni_vm(jvm_handle jni)
{
	jvm_handle vm = 0;

	JVM_CALL(jni, JNI_GET_JAVA_VM, int32_t(*)(jvm_handle, jvm_handle *))(jni, &vm);
	return vm;
}

#endif
