"""Attacks on the product: kills, damage, full disks, hostile files. See __main__.py."""
