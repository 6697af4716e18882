"""Workers as processes: what each is told, how it is started, watched and started again, and those that somebody else runs."""
