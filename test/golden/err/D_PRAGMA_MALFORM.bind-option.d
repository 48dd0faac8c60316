//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option nspec=2 * 4
BEGIN { exit(0); }
