//@ cmd: -d parse
#pragma D option quiet
#pragma D option bufsize=16m // a comment
#pragma D option aggrate=100ms /* another */
  #  pragma D option defaultargs
#pragma ident "@(#)old.d 1.1"
#ident "older"
#
# 12 "other.d"
#line 40 "again.d"
#pragma D depends_on provider io
#pragma once
BEGIN
{
#pragma D option strsize=64
	trace("x");
}
#pragma D option destructive
