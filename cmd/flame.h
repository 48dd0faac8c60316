/* descry flame: pictures of stacks, from files or standard input. */
#ifndef DESCRY_CMD_FLAME_H
#define DESCRY_CMD_FLAME_H

/* argv[0] is "flame". The exit status. */
int cmd_flame(int argc, char **argv);

#endif
