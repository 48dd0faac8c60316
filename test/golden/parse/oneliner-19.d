//@ cmd: -d parse
ip:::send { @[args[2]->ip_daddr] = sum(args[2]->ip_plength); }
