//@ cmd: -d ir -x aggsize=8
//@ err
//@ exit: 1
BEGIN { @ = count(); @b["key"] = quantize(1); }
