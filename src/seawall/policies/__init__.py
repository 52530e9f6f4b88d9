"""The policies: small classes over numbers that decide and never wait."""
