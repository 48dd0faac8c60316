//@ cmd: -d bind
//@ err
//@ exit: 1
translator int < int I > { a = 1; };
BEGIN { trace(1); }
