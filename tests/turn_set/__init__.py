"""A small labelled set for turn-taking: who means to interrupt, and where a turn ends. Made from seeds, the same every time."""
