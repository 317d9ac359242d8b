"""The shapes of the REST interface: they render rows, and are what the OpenAPI document shows."""
