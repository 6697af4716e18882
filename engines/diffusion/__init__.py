"""The DIFFUSION engine's inside: which jobs share the next call (scheduling), models that denoise by themselves (native), and any
pipeline of the diffusers library (pipelines)."""
