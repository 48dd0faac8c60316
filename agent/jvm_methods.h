/* Methods that a JVM is to interpret, because their arguments are read: in a frame of the
 * interpreter they have known places, in compiled code they have not.
 *
 * In: the text of wire/jvm_text.h. Out: the JVM's compilers take no such method, neither alone nor
 * as a part of its callers, also of classes that are loaded later.
 */
#ifndef DESCRY_AGENT_JVM_METHODS_H
#define DESCRY_AGENT_JVM_METHODS_H

#include "agent/jvm_table.h"
#include "wire/jvm_text.h"

struct methods {
	struct methods *next; /* of all that are in use */
	char text[JAVA_SWITCH_TEXT];
};

/* text: "@ACCESS;CLASS.METHOD...", or anything else for none. Returns true when there are some; the
 * JVM must give up its code then. */
int jvm_methods_take(jvm_handle tools, jvm_handle jni, struct methods *m, const char *text);
/* Lets the JVM compile them again, unless others want them. */
void jvm_methods_drop(jvm_handle tools, jvm_handle jni, struct methods *m);

#endif
