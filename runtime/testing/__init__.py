"""The public test tools: assertions on chaining, clocks and harnesses."""
