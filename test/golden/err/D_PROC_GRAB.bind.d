//@ cmd: -d bind
//@ err
//@ exit: 1
pid999999999:a.out:main:entry { }
