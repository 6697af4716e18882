"""OpenAI-compatible realtime over WebSocket."""
