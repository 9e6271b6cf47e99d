"""Questions to the person: which answers there are, what keys do, how it is drawn."""
