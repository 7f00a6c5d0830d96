"""The kinds of groups: one for each API that environments of other people have."""
