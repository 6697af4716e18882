"""Connections between hosts: addresses, the door, and the secret that both sides know."""
