"""`treadle serve`: a page for each of several users, in a process and a folder of their own, behind one front."""
