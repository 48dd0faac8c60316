#ifndef DESCRY_CMD_SERVE_H
#define DESCRY_CMD_SERVE_H

/* descry serve: a live page of a D program's views. The exit status. */
int cmd_serve(int argc, char **argv);

#endif
