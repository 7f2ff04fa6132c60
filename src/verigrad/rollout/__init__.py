"""Prompts -> completions: the native engine, vLLM and an OpenAI-compatible server.

``native.NativeEngine`` samples in this process; ``vllm.VLLMEngine`` and ``http.HTTPEngine`` are
optional. All of them implement :class:`verigrad.types.Engine` and pass one shared contract test.
"""
