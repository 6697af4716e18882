"""What the command line can do, one file each: `add_arguments(parser)` and `run(arguments) -> exit code`."""
