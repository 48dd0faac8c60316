//@ cmd: -d parse
tcp:::connect-established { @[args[3]->tcps_raddr, args[3]->tcps_rport] = count(); }
