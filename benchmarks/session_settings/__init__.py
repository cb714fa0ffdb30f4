"""Session settings: what each costs and gains in load time, memory, latency and processor time."""
