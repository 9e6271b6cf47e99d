"""Playing a log again: what the machine said and decided is made anew from what came from outside, and compared."""
