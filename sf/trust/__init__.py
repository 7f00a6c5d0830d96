"""Whether what a file names may be run: the code of `module:Name`, in a checkpoint or a configuration of somebody else.

A file may name what comes with this package or is registered. Anything else is imported only where the user names it on
the command line, says that the file is trusted, or has trained with the same names before.
"""
