//@ cmd: -d parse
BEGIN { print(*curthread); exit(0); }
BEGIN { trace(curthread->comm); trace(`jiffies); }
