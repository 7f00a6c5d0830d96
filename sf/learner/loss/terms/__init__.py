"""The terms of the loss, one module each, and the table of them."""
