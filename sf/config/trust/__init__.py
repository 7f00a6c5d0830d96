"""Whether code that a file names may run: `module:Name`, in a checkpoint or a configuration that somebody else made.

A file may name what comes with this package or is registered. Other code is imported only where the user names it on
the command line, trusts the file, or has trained with the same names before.
"""
