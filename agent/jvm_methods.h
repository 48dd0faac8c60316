/* Methods that are to be marked, those that are there and those of classes that are loaded later:
 * by the names of wire/jvm_text.h.
 *
 * A mark of this file's own makes a JVM interpret a method whose arguments are read: in a frame of
 * the interpreter they have known places, in compiled code they have not. The compilers take no
 * such method, neither alone nor as a part of its callers.
 */
#ifndef DESCRY_AGENT_JVM_METHODS_H
#define DESCRY_AGENT_JVM_METHODS_H

#include "agent/jvm_table.h"
#include "wire/jvm_text.h"

/* Marks a method, or takes the mark away. */
typedef void method_mark(jvm_ref method, int wanted);

struct methods {
	struct methods *next; /* of all that are in use */
	method_mark *mark;    /* NULL: none are */
	char text[JAVA_SWITCH_TEXT];
};

/* Reads "@ACCESS" and has the JVM know what jvm_methods_interpret() changes. Returns what is behind
 * it, NULL: it is another text. */
const char *jvm_methods_access(jvm_handle jni, const char *text);
/* The mark of methods that are to be interpreted. */
void jvm_methods_interpret(jvm_ref method, int wanted);

/* text: ";CLASS.METHOD...", up to a blank or its end. Returns what is behind it. */
const char *jvm_methods_take(jvm_handle tools, jvm_handle jni, struct methods *m, method_mark *mark,
			     const char *text);
/* Takes the marks away, but for those of others. */
void jvm_methods_drop(jvm_handle tools, jvm_handle jni, struct methods *m);

#endif
