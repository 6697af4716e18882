"""How sessions of any kind are kept: ownership, journal, snapshots, the ways in which they end."""
