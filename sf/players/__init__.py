"""Players that do not learn, beside the policies that do: who is in the pool, who meets whom, and who acts for them."""
