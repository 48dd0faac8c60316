//@ cmd: -d parse
proc:::exec-success { printf("%d %s\n", pid, curpsinfo->pr_psargs); }
