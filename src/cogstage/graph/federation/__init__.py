"""Federated sums: sites add up their counts without showing them, not even to whoever adds.

``messages`` signs and checks files, ``masking`` has the cryptography, ``rounds`` describes a round, ``site`` and
``coordinator`` take its steps. docs/concepts/federation.md has the protocol and its threat model.
"""
