//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D option amin=Evolving/Evolving/Common
BEGIN { x = pid; trace(curthread->pid); }
