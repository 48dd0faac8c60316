//@ engine: interp,kernel,inproc
//@ err
//@ sub: /^descry: script .*\n//
#pragma D option quiet
#pragma D option droptags
#pragma D option nspec=1

BEGIN { a = speculation(); b = speculation(); c = speculation(); exit(0); }
