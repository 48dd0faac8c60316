//@ cmd: -d bind
//@ err
//@ exit: 1
pid12x:a.out:main:entry { }
