//@ cmd: -d parse
sched:::wakeup { t[args[0]->pr_lwpid] = timestamp; } sched:::on-cpu /t[tid]/ { @ = quantize(timestamp - t[tid]); t[tid] = 0; }
