"""How many sessions of a kind this machine runs side by side: found by running them."""
