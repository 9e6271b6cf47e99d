import unittest

from units import metres_to_feet
from report import line


class ReportTest(unittest.TestCase):
    def test_both_units_are_said(self):
        self.assertEqual(line("Säntis", 2502), "Säntis: 2502 m (8209 ft)")

    def test_nothing_is_nothing(self):
        self.assertEqual(metres_to_feet(0), 0)
