/* A function that ftrace lists and kprobes must not touch: traced by fprobes, where there are some, else not listed. */
//@ cmd: -q -Z -s %s
fbt::nmi_handle:entry { }
BEGIN { exit(0); }
