import unittest

from slug import slugify


class SlugTest(unittest.TestCase):
    def test_accents_and_marks_go(self):
        self.assertEqual(slugify("Ein schöner Tag!"), "ein-schoner-tag")

    def test_nothing_stays_nothing(self):
        self.assertEqual(slugify("?!"), "")
