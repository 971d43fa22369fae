"""The page that compares ours with the paper's, and its drawings."""
