import unittest
from decimal import Decimal

from ledger import parse, totals

TEXT = """\
# March
2026-03-01; food; 12.50
2026-03-02; rent; 700

2026-03-04; food; 7.25
"""


class LedgerTest(unittest.TestCase):
    def test_comments_and_blank_lines_are_skipped(self):
        self.assertEqual(len(parse(TEXT)), 3)

    def test_amounts_of_one_category_are_summed(self):
        self.assertEqual(totals(parse(TEXT)), {"food": Decimal("19.75"), "rent": Decimal("700")})


if __name__ == "__main__":
    unittest.main()
