//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { @ = count(); printa("%*@d\n", @); }
