"""One file a system: how it trains and how it decodes. Each is a worker of `bench.pipe`."""
