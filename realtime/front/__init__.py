"""Several nodes behind one port: a process that accepts connections and passes each, unread, to the node that it belongs to.

It also starts what the nodes share, the engine workers, and the nodes themselves, and starts again what has ended.
"""
