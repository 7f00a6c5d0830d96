"""Fixed opponents of the policies that learn: who is in the pool, who meets whom, and who acts for them."""
