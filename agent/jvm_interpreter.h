/* The probes of methods in an interpreter whose code lacks them: from Java 24 on, HotSpot's has
 * them only when the flag was true while the JVM began.
 *
 *	a Method's word _i2i_entry        -> enter_0, enter_1  -> the interpreter's entry
 *	the dispatch table's word for     -> leave_0 ...       -> the interpreter's code of that
 *	each bytecode that returns                                bytecode
 *	_remove_activation_entry          -> leave_by_exception -> the interpreter's code for it
 *
 * Only words of data are changed, each of which is true before and after. The new code calls the
 * JVM's own functions that have the probes, with the same arguments as the interpreter of older
 * versions, and goes on to the old address. A thread that is in it when the words are reset needs
 * nothing of them. Methods in native code pass no probes: no such word leads to the code that ends
 * them. What the JVM compiles to reach them would have the probes for ever, so meanwhile a flag of
 * the JVM keeps it from that (PreferInterpreterNativeStubs).
 *
 * In front of the entry there is no frame of the interpreter yet, so enter_0 makes one that looks
 * like it, marked by WIRE_JAVA_ENTERING: arguments are read from it.
 */
#ifndef DESCRY_AGENT_JVM_INTERPRETER_H
#define DESCRY_AGENT_JVM_INTERPRETER_H

#include "agent/jvm_table.h"

/* text: "#NUMBER,...", the numbers of enum java_interpreter. Returns what is behind it; NULL: it is
 * not such a text, and nothing is changed. */
const char *jvm_interpreter_take(const char *text);
void jvm_interpreter_drop(void);
/* Makes a method pass its probes, or not. */
void jvm_interpreter_mark(jvm_ref method, int wanted);

#endif
