"""What a server of several nodes needs that one of a single node does without."""

from sessions.store.settings import StoreSettings


class NodesNeedStore(ValueError):
    """What one node keeps in its memory no other knows."""


def check_store(store: StoreSettings, nodes: int) -> None:
    """Raises NodesNeedStore."""
    if not store.is_shared:
        raise NodesNeedStore(
            f"store.url: expected a store that all nodes share, such as redis://127.0.0.1:6379/0, for --nodes {nodes}, "
            f"got {store.url}"
        )
