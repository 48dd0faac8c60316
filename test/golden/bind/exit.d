//@ cmd: -d bind
BEGIN { exit(0); }
