/* descry heal: takes out of processes what a tracer that was killed left there. */
#ifndef DESCRY_CMD_HEAL_H
#define DESCRY_CMD_HEAL_H

int cmd_heal(int argc, char **argv);

#endif
