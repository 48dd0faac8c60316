//@ cmd: -d bind
//@ err
//@ exit: 1
#pragma D attributes Often/Stable/Common f
#pragma D attributes Stable/Stable f
BEGIN { trace(1); }
