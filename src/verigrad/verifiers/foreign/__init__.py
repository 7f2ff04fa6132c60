"""Rewards brought unchanged: TRL, verl, verifiers, reasoning-gym, OpenRLHF and plain functions."""
