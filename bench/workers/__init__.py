"""One file per system: how it trains and decodes. Each is a worker of `bench.pipe`."""
