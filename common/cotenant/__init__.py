"""Cotenant: what does each user really get when everybody trains on this machine at once?"""
