"""Names for what clients ask of us."""

import secrets


def new_id(kind: str) -> str:
    """Such as `chatcmpl-5f…`: unique without any memory of earlier ones."""
    return f"{kind}-{secrets.token_hex(12)}"
