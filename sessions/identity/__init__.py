"""Who asks: keys, client secrets, tenants."""
