//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @never; }
