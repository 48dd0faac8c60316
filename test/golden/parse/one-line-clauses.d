//@ cmd: -d parse
BEGIN{trace(1)}END{trace(2);}ERROR{}
tick-1s{}profile-997hz{}tick-5sec/x/{exit(0)}
1234{trace("by id")}
56,78 { }
m:f:n{} f:n{} n{} :::n{} p:::{} p:m::{} ::f:{}
int*::: { } int* { } unsigned*f:entry { }
self:::x, this:::y { }
