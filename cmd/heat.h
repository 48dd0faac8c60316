/* descry heat: heat maps, from a D program that is run, from files or from standard input. */
#ifndef DESCRY_CMD_HEAT_H
#define DESCRY_CMD_HEAT_H

/* argv[0] is "heat". The exit status. */
int cmd_heat(int argc, char **argv);

#endif
