"""The sample projects have tests of their own, which are data here."""

collect_ignore = ["tasks"]
