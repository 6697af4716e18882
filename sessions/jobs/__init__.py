"""Work that goes on without the connection of whoever asked for it."""
