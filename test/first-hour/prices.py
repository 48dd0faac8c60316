"""A price for each number. All are worked out when the module is imported: that is why shop.py starts slowly."""
import decimal


def worked_out(number):
    return decimal.Decimal(number).sqrt().quantize(decimal.Decimal("0.01"))


table = [str(worked_out(number)) for number in range(60000)]


def of(number):
    return table[number % len(table)]
