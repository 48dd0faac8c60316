//@ cmd: -d parse
io:::start { s[args[0]->b_edev, args[0]->b_blkno] = timestamp; } io:::done /s[args[0]->b_edev, args[0]->b_blkno]/ { @ = quantize(timestamp - s[args[0]->b_edev, args[0]->b_blkno]); s[args[0]->b_edev, args[0]->b_blkno] = 0; }
