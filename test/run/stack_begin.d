//@ engine: kernel
/* The kernel's frames in BEGIN and END are descry's own: there are none to see. */
#pragma D option quiet
BEGIN { printf("%d %d [", stackdepth, caller == 0); stack(); printf("]\n"); @[stack()] = count(); exit(0); }
END { printf("%d [", stackdepth); stack(); printf("]\n"); printa("{%k}%@d\n", @); }
