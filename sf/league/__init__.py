"""Players that do not learn, beside the policies that do: who meets whom, and how it ends."""
