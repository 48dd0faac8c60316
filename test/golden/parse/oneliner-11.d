//@ cmd: -d parse
profile-997 /arg0/ { @[stack()] = count(); }
