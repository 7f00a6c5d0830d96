"""`sf-gtp`: a policy plays Go with another program."""
