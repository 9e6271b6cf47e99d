"""What messages mention, and how it goes along with them."""
