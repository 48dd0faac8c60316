//@ cmd: -d parse
//@ err
//@ exit: 1
BEGIN { x = sizeof (`); y = vmlinux`; }
