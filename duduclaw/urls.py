"""Every address that Django serves; `/mcp`, `/tools` and `/ws/mcp/` are in `asgi.py`."""

from django.contrib import admin
from django.urls import include, path

from duduclaw import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
    path("admin/", admin.site.urls),
    path("api/", include("duduclaw.api.urls")),
]
