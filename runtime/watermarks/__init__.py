"""Watermark strategies and generators."""
