/* Writes stacks to the file of -o. */
#ifndef DESCRY_CMD_STACK_FILE_H
#define DESCRY_CMD_STACK_FILE_H

#include "base/err.h"
#include "render/writers.h"

/* path NULL: to standard output. is_private: names come from a process's memory, and only its user
 * can read a file that is made. Nothing is opened when the text would be too large. */
struct err *stack_file_write(const char *path, bool is_private, const struct stack_writer *w,
			     struct stack_output *output);

#endif
