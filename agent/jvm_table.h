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
	JVMTI_PRIORITY = 5, /* JVMTI_THREAD_NORM_PRIORITY */
};

/* Indexes in the tables. */
enum {
	VM_GET_ENV = 6,

	JNI_GET_VERSION = 4,
	JNI_DEFINE_CLASS = 5,
	JNI_FIND_CLASS = 6,
	JNI_EXCEPTION_CLEAR = 17,
	JNI_NEW_OBJECT_A = 30,
	JNI_GET_METHOD_ID = 33,
	JNI_GET_STATIC_METHOD_ID = 113,
	JNI_CALL_STATIC_VOID_A = 143,
	JNI_NEW_STRING_UTF = 167,
	JNI_REGISTER_NATIVES = 215,
	JNI_EXCEPTION_CHECK = 228,
	JNI_FUNCTIONS = 229,

	/* numbered from 1 in the specification */
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

#endif
