/* Loads descry's library (agent/jvm_switch.c) into a running JVM, by the JVM's own attach
 * mechanism, as jcmd does: no flag of the JVM is needed, and the JVM itself runs the library.
 *
 *	descry   .attach_pidN in /tmp, and SIGQUIT     -> the JVM listens at /tmp/.java_pidN
 *	descry   "load", the library, its text         -> the JVM calls Agent_OnAttach() and answers
 *
 * Always true: a child with the rights of the JVM's user does all this, in the JVM's file system.
 * The JVM may be hostile: it can delay the answer up to a limit, and choose the text of an error.
 */
#ifndef DESCRY_LOAD_JAVA_ATTACH_H
#define DESCRY_LOAD_JAVA_ATTACH_H

#include <sys/types.h>

#include "base/err.h"

/* addresses: the rest of the library's text (wire/jvm_text.h). The library acts until *ret_fifo
 * is closed, by this process and all its children. */
struct err *java_attach(pid_t pid, const char *addresses, int *ret_fifo);
enum { JAVA_LIBRARY_SIZE = 32 };
/* Sets ret to the base name of the library's file. */
void java_library_name(char ret[JAVA_LIBRARY_SIZE]);
/* Tells the library to end now. Closes the descriptor. */
void java_let_go(int fifo);

#endif
