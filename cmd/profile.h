#ifndef DESCRY_CMD_PROFILE_H
#define DESCRY_CMD_PROFILE_H

/* descry profile: argv[0] is its own name. The exit status. */
int cmd_profile(int argc, char **argv);

#endif
