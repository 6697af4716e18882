"""What a spoken conversation is: turns, answers, history, and the sessions that hold them."""
