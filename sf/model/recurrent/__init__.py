"""Recurrent cores whose unroll over T steps groups its products, forth and back."""
