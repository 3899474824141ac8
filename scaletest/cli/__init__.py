"""The command line: one file a command, thin. Commands are imported when they are called, so that
--help is quick.
"""
