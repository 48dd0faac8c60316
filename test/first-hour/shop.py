"""The Python program of doc/first-hour.md: it reads its prices when it starts, then answers orders, and forgets none of its sessions.
usage: shop.py [ORDERS]; without a number it goes on until it is ended."""
import itertools
import json
import sys
import time

import prices

sessions = {}


def remember(number):
    sessions[number] = bytes(4000)


def render(order):
    return json.dumps([order] * 200)


def main(orders):
    for number in itertools.islice(itertools.count(), orders):
        remember(number)
        render({"number": number, "price": prices.of(number)})
        time.sleep(0.01)


main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
