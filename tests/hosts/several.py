"""Several hosts on one machine, as benchmarks have them."""

from __future__ import annotations

from outcore.cli.bench import load

_hosts = load("_hosts")
Hosts, Namespaces, missing = _hosts.Hosts, _hosts.Namespaces, _hosts.missing
