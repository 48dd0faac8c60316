/* What src/load/java_switch.c and the library that it loads into a running JVM (agent/jvm_switch.c)
 * tell each other.
 *
 * The text that the JVM passes to Agent_OnAttach(): the path of a FIFO, the address of the JVM's
 * bool WhiteBoxAPI, and the addresses of the bools that are to be true; numbers in hexadecimal,
 * separated by blanks. A "-" is in front of a bool that another tracer has set. The bools are true
 * until the last writer has closed the FIFO. So long the JVM also does not compile some methods, so
 * that their arguments are in frames of the interpreter:
 *
 *	FIFO WHITEBOX FLAG... #NUMBER,...;CLASS.METHOD... @ACCESS;CLASS.METHOD;CLASS.METHOD
 *
 * ACCESS is the place of the access flags in the JVM's Method, from Java 21 on of its status. A
 * name may have a * at its beginning and one at its end. The methods behind # pass their probes in
 * an interpreter that has no code for them (agent/jvm_interpreter.h); its numbers are those of
 * enum java_interpreter.
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

/* Where an interpreter without probes is reached: places of members, then addresses. */
enum java_interpreter {
	JAVA_METHOD_ENTRY,        /* in a Method: where the interpreter enters it */
	JAVA_METHOD_FROM,         /* the same, while the method is not compiled */
	JAVA_METHOD_CONST,        /* its ConstMethod */
	JAVA_CONST_PARAMETERS,    /* in a ConstMethod: how many words its parameters have */
	JAVA_CONST_CODE,          /* where its bytecode begins */
	JAVA_ENTRIES,             /* the interpreter's entries, by kind of method */
	JAVA_NORMAL_TABLE,        /* the code of each bytecode */
	JAVA_ACTIVE_TABLE,        /* the one in use, a copy of that or of another */
	JAVA_LEAVES_BY_EXCEPTION, /* a variable: the code that ends a method so */
	JAVA_ENTERED,             /* the JVM's functions that have the probes */
	JAVA_LEFT,
	JAVA_INTERPRETER_NUMBERS,
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
