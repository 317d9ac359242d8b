"""What crosses applications: settings, services, builders, and the tests that walk the whole product."""
