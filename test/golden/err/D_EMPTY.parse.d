//@ cmd: -d parse
//@ err
//@ exit: 1
/* nothing but a comment */
#pragma D option quiet
