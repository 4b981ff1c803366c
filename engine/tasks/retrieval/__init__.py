"""Retrieval: lists are encoded, matched and measured here."""
