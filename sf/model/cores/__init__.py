"""Cores between encoder and heads, which remember: recurrent ones and a transformer."""
