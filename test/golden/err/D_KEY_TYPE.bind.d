//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @a = count(); @b[@a] = count(); @b[trace(1)] = count(); c[stack()] = 1; }
