/* What src/load/java_switch.c and the library that it loads into a running JVM (agent/jvm_switch.c)
 * tell each other.
 *
 * The text that the JVM passes to Agent_OnAttach(): the path of a FIFO, the address of the JVM's
 * bool WhiteBoxAPI, and the addresses of the bools that are to be true; numbers in hexadecimal,
 * separated by blanks. A "-" is in front of a bool that another tracer has set. The bools are true
 * until the last writer has closed the FIFO. So long the JVM also does not compile some methods, so
 * that their arguments are in frames of the interpreter:
 *
 *	FIFO WHITEBOX FLAG... @ACCESS;CLASS.METHOD;CLASS.METHOD
 *
 * ACCESS is the place of the access flags in the JVM's Method, in Java 21 of its status. A name may
 * have a * at its beginning and one at its end.
 *
 * Or it samples the objects that the JVM makes (wire/jvm_samples.h), a sample for each so many
 * bytes, until the writer has closed the FIFO:
 *
 *	FIFO *BYTES
 */
#ifndef DESCRY_WIRE_JVM_TEXT_H
#define DESCRY_WIRE_JVM_TEXT_H

/* Parts of the library's path in the JVM's file system, /tmp/.descry-NUMBER/jvm-HASH.so */
#define JAVA_SWITCH_FOLDER "/.descry-"
#define JAVA_SWITCH_FILE "/jvm-"

enum {
	JAVA_SWITCH_FLAGS = 4,    /* in one text, at most */
	JAVA_SWITCH_TEXT = 900,   /* bytes of it, at most, with the NUL; the JVM takes 1,024 */
	JAVA_SWITCH_PATH = 64,    /* of them for the FIFO */
	JAVA_SWITCH_HOLDERS = 16, /* at the same time, in one JVM */
};

/* Results of Agent_OnAttach(). */
enum java_switch_result {
	JAVA_SWITCH_ON,
	JAVA_SWITCH_BAD_TEXT,
	JAVA_SWITCH_NO_ROOM,
	JAVA_SWITCH_NO_FIFO,
	JAVA_SWITCH_NO_JVMTI,
	JAVA_SWITCH_NO_INTERNALS,
	JAVA_SWITCH_NO_THREAD,
	JAVA_SWITCH_NO_SAMPLES,
	JAVA_SWITCH_SAMPLED,
};

#endif
