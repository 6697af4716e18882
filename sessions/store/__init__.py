"""Where decisions about sessions are made, each in one atomic step: admission, ownership, journal. The only room that knows
Redis."""
