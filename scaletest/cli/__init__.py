"""The command line: one thin file a command, imported when it is called, so --help is quick."""
