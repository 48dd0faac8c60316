//@ cmd: -d bind
//@ err
//@ exit: 1
BEGIN { normalize(count(), 4); denormalize(sum(1)); }
