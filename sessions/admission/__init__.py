"""Who may run, as a node sees it: its lease, its seats, the waiting room. Decided in the store."""
