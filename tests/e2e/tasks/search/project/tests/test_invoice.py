import unittest
from decimal import Decimal

from shop.invoice import invoice


class InvoiceTest(unittest.TestCase):
    def test_small_sums_are_rounded_to_the_cent(self):
        self.assertEqual(invoice([("nail", 10, Decimal("0.05"))]), "To pay: 0.54")

    def test_large_sums_are_rounded_in_the_same_way(self):
        self.assertEqual(invoice([("boat", 1, Decimal("2000.01"))]), "To pay: 2154.01")
