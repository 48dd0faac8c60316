/* descry stack: the stacks of all threads of a process, or of what a core file holds of one. */
#ifndef DESCRY_CMD_STACK_H
#define DESCRY_CMD_STACK_H

int cmd_stack(int argc, char **argv);

#endif
