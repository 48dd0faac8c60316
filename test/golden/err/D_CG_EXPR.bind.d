//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { avg(1); }
