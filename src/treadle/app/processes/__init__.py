"""Sessions that other processes have open: joining and stopping them."""
